"""kopf's side: watches our kinds and hands every event over, unchanged and undecided.

Only `on.event` is used: no finalizers, no annotations of kopf's own, nothing that could keep an object from being
deleted while the operator is away. A deleted job is simply not in the world any more, and its devices are told so.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import kopf

from hedgerow_operator.operating import Operator
from hedgerow_plans.resources.common import GROUP, VERSION


def register(registry: kopf.OperatorRegistry, operator: Operator) -> None:
    """Have kopf start and stop the operator with itself, and tell it of every event."""

    @kopf.on.login(id="log-in", registry=registry)
    def log_in(**arguments: Any) -> kopf.ConnectionInfo | None:
        """Use the service account in a cluster, the kubeconfig elsewhere: the order in which lightkube looks."""
        return kopf.login_with_service_account(**arguments) or kopf.login_with_kubeconfig(**arguments)

    @kopf.on.startup(id="start", registry=registry)
    async def start(**_: Any) -> None:
        await operator.start()

    @kopf.on.cleanup(id="stop", registry=registry)
    async def stop(**_: Any) -> None:
        await operator.stop()

    for kind in ("trainingjobs", "devices", "deviceclasses"):
        kopf.on.event(GROUP, VERSION, kind, id=f"watch-{kind}", registry=registry)(_handler(operator, kind))


def _handler(operator: Operator, kind: str) -> Callable[..., Awaitable[None]]:
    async def watched(event: dict[str, Any], **_: Any) -> None:
        operator.watched(kind, event["object"], deleted=event["type"] == "DELETED")

    return watched
