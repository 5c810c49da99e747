"""`hedgerow classes`: the catalogue of device classes that comes with the package."""

import json
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import click
import yaml

from hedgerow_operator.mistakes import BadInput
from hedgerow_operator.tables import table
from hedgerow_plans import catalogue
from hedgerow_plans.resources.device_class import DeviceClass
from hedgerow_plans.resources.parsing import Unparsable, parse_resource
from hedgerow_plans.resources.quantities import format_bytes


def names() -> list[str]:
    """Return the names of all classes of the catalogue."""
    return sorted(file.name.removesuffix(".yaml") for file in _files())


def manifest(name: str) -> str:
    """Return a class of the catalogue as it stands there, or end with a sentence."""
    for file in _files():
        if file.name == f"{name}.yaml":
            return file.read_text(encoding="utf-8")
    raise BadInput(f"There is no class {name!r} in the catalogue; known are {', '.join(names())}.")


def body(name: str) -> dict[str, Any]:
    """Return a class of the catalogue as an object."""
    parsed: dict[str, Any] = yaml.safe_load(manifest(name))
    return parsed


def device_class(name: str) -> DeviceClass:
    """Return a class of the catalogue, read as the operator reads it."""
    parsed = parse_resource(DeviceClass, body(name))
    if isinstance(parsed, Unparsable):
        raise BadInput(parsed.message)
    return parsed


def _files() -> Iterator[Traversable]:
    return (file for file in resources.files(catalogue).iterdir() if file.name.endswith(".yaml"))


@click.group(invoke_without_command=True)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_context
def classes(context: click.Context, output: str) -> None:
    """List the device classes of the catalogue; `hedgerow classes show NAME` prints one to be applied.

    Their figures are published ones: each says where they come from.
    """
    if context.invoked_subcommand is None:
        click.echo(json.dumps([body(name) for name in names()]) if output == "json" else _as_table())


@classes.command()
@click.argument("name")
def show(name: str) -> None:
    """Print the manifest of the class NAME, for `kubectl apply -f -`."""
    click.echo(manifest(name), nl=False)


def _as_table() -> str:
    left_out = "\n".join(f"{name}: {reason}" for name, reason in catalogue.LEFT_OUT.items())
    headings = ["NAME", "MEMORY", "FLOPS/S", "PJ/FLOP", "PJ/BYTE IN", "PJ/BYTE OUT"]
    return f"{table(headings, [_row(name) for name in names()])}\n\nNot in the catalogue:\n{left_out}"


def _row(name: str) -> list[str]:
    spec = device_class(name).spec
    paging = (spec.storage.picojoules_per_byte_in, spec.storage.picojoules_per_byte_out) if spec.storage else ("", "")
    rate, energy = spec.compute.flops_per_second, spec.compute.picojoules_per_flop
    return [name, format_bytes(spec.budget_bytes), f"{rate:,}", f"{energy:,}", *map(str, paging)]
