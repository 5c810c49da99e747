"""Commands about a fleet, shared by `hedgerow` and `kubectl hedgerow`: each patches a field and says what happened."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import click

from hedgerow_operator.kube import Body, ClusterError, Kube, connect, default_namespace
from hedgerow_operator.tables import device_rows, job_rows, table
from hedgerow_plans.resources.rollback import is_rollback_target

KINDS = {"device": "devices", "devices": "devices", "job": "trainingjobs", "jobs": "trainingjobs"}
_T = TypeVar("_T")

namespace_option = click.option("-n", "--namespace", help="The fleet; what the kubeconfig names if absent.")
context_option = click.option("--context", help="The kubeconfig context; the current one if absent.")


class Target(click.ParamType[tuple[str, str]]):
    """device/NAME or job/NAME."""

    name = "device/NAME|job/NAME"

    def __init__(self, *words: str) -> None:
        self._words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Return the word and the name."""
        word, _, name = str(value).partition("/")
        if word not in self._words or not name:
            self.fail(f"{value!r} names nothing; write {' or '.join(f'{w}/NAME' for w in self._words)}.", param, ctx)
        return word, name


def run(work: Callable[[Kube, str], Awaitable[_T]], namespace: str | None, context: str | None) -> _T:
    """Do something with the cluster and end with a sentence if it refuses."""

    async def connected() -> _T:
        kube = connect(context=context)
        try:
            return await work(kube, namespace or default_namespace(context))
        finally:
            await kube.close()

    try:
        return asyncio.run(connected())
    except ClusterError as problem:
        raise click.ClickException(str(problem)) from problem


def new_request_id() -> str:
    """Return an id that nobody has used: the moment, for people, and chance."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(4)}"


async def _must_find(kube: Kube, namespace: str, word: str, name: str) -> Body:
    body = await kube.get(KINDS[word], namespace, name)
    if body is None:
        raise click.ClickException(
            f"There is no {word}/{name} in namespace {namespace}; "
            f"`kubectl get {KINDS[word]} -n {namespace}` lists what there is."
        )
    return body


@click.command()
@click.argument("target", type=Target("device", "job"))
@click.option("--to", "to", default="last", show_default=True, help="last, previous, base, or a checkpoint id.")
@namespace_option
@context_option
@click.option("--wait", is_flag=True, help="Wait until the device has answered.")
@click.option(
    "--timeout", "timeout_seconds", default=120, show_default=True, type=click.IntRange(1), help="For --wait."
)
def rollback(  # noqa: PLR0917 - click passes one argument per option
    target: tuple[str, str], to: str, namespace: str | None, context: str | None, wait: bool, timeout_seconds: int
) -> None:
    """Take a device, or every device of a job, back to an earlier state.

    A device that was rolled back is held: it does not train again until it is released, or its job gets a new
    generation.
    """
    if not is_rollback_target(to):
        raise click.ClickException(
            f"{to!r} is nowhere to go back to; write last, previous, base, or a checkpoint id such as step-000150."
        )
    run(partial(_roll_back, target=target, to=to, wait_seconds=timeout_seconds if wait else 0), namespace, context)


async def _roll_back(kube: Kube, namespace: str, *, target: tuple[str, str], to: str, wait_seconds: int) -> None:
    word, name = target
    await _must_find(kube, namespace, word, name)
    request = {"to": to, "requestId": new_request_id()}
    spec = {"rollback": request} if word == "device" else {"rollback": {"request": request}}
    await kube.patch(KINDS[word], namespace, name, {"spec": spec})
    click.echo(f"{word}/{name}: asked to go back to {to} (request {request['requestId']}).")
    if wait_seconds:
        await _wait(kube, namespace, target, request["requestId"], time.monotonic() + wait_seconds)


async def _wait(kube: Kube, namespace: str, target: tuple[str, str], request_id: str, deadline: float) -> None:
    word, name = target
    while time.monotonic() < deadline:
        answer = _answer(word, await _must_find(kube, namespace, word, name), request_id)
        if answer is not None:
            is_good, text = answer
            click.echo(f"{word}/{name}: {text}")
            if not is_good:
                raise click.exceptions.Exit(1)
            return
        await asyncio.sleep(0.3)
    raise click.ClickException(
        f"{word}/{name} has not answered yet; the request stays, and is obeyed when the device is there."
    )


def _answer(word: str, body: Body, request_id: str) -> tuple[bool, str] | None:
    """Return whether a request went well and what was said about it, or None while it is pending."""
    status = body.get("status") or {}
    if word == "device":
        said = status.get("rollback") or {}
        if said.get("requestId") != request_id or said.get("result") == "Pending":
            return None
        text = f"{said.get('result')}, runs {said.get('running') or 'base'}. {said.get('message', '')}".strip()
        return said.get("result") in {"Complete", "NoStateChange"}, text
    for condition in status.get("conditions", ()):
        if condition["type"] == "RolledBack" and request_id in condition.get("message", ""):
            return None if condition["status"] == "Unknown" else (condition["status"] == "True", condition["message"])
    return None


@click.command()
@click.argument("target", type=Target("device"))
@namespace_option
@context_option
def release(target: tuple[str, str], namespace: str | None, context: str | None) -> None:
    """Let a device that was rolled back train again."""
    run(partial(_release, name=target[1]), namespace, context)


async def _release(kube: Kube, namespace: str, *, name: str) -> None:
    body = await _must_find(kube, namespace, "device", name)
    said = (body.get("status") or {}).get("rollback") or {}
    request_id = said.get("requestId") or (body["spec"].get("rollback") or {}).get("requestId")
    if not request_id:
        raise click.ClickException(f"device/{name} was not rolled back, so there is nothing to release it from.")
    await kube.patch("devices", namespace, name, {"spec": {"release": {"requestId": request_id}}})
    click.echo(f"device/{name}: released from request {request_id}; it may train again.")


@click.command()
@click.argument("target", type=Target("device"))
@namespace_option
@context_option
def approve(target: tuple[str, str], namespace: str | None, context: str | None) -> None:
    """Let a device that registered itself get work."""
    run(partial(_approve, name=target[1]), namespace, context)


async def _approve(kube: Kube, namespace: str, *, name: str) -> None:
    body = await _must_find(kube, namespace, "device", name)
    if body["spec"].get("approved"):
        click.echo(f"device/{name}: was approved already.")
        return
    await kube.patch("devices", namespace, name, {"spec": {"approved": True}})
    click.echo(f"device/{name}: approved; it gets work from now on.")


@click.command()
@click.argument("what", type=click.Choice(["jobs", "devices"]))
@namespace_option
@context_option
def get(what: str, namespace: str | None, context: str | None) -> None:
    """Show jobs or devices as a table."""
    run(partial(_get, what=what), namespace, context)


async def _get(kube: Kube, namespace: str, *, what: str) -> None:
    bodies = await kube.list(KINDS[what], namespace)
    if not bodies:
        click.echo(f"There are no {what} in namespace {namespace}.")
        return
    headings, rows = job_rows(bodies) if what == "jobs" else device_rows(bodies)
    click.echo(table(headings, rows))
