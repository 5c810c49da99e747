"""The cluster, through lightkube: only the handful of calls that the operator and its commands need.

Bodies are plain JSON objects here; they are parsed by whoever asked. An object that is gone is None, not an error; what
the API server or the network refuses is a `ClusterError` with a sentence.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx2
from lightkube import ApiError, AsyncClient
from lightkube.config.kubeconfig import KubeConfig
from lightkube.core.exceptions import ConfigError
from lightkube.core.resource import NamespacedResource
from lightkube.generic_resource import create_global_resource, create_namespaced_resource
from lightkube.resources.core_v1 import ConfigMap, Event
from lightkube.types import CascadeType, PatchType

from hedgerow_plans.resources.common import GROUP, VERSION

TrainingJobs = create_namespaced_resource(GROUP, VERSION, "TrainingJob", "trainingjobs")
Devices = create_namespaced_resource(GROUP, VERSION, "Device", "devices")
ExecutionPlans = create_namespaced_resource(GROUP, VERSION, "ExecutionPlan", "executionplans")
DeviceClasses = create_global_resource(GROUP, VERSION, "DeviceClass", "deviceclasses")

KINDS: Mapping[str, Any] = {
    "trainingjobs": TrainingJobs,
    "devices": Devices,
    "executionplans": ExecutionPlans,
    "deviceclasses": DeviceClasses,
    "configmaps": ConfigMap,
    "events": Event,
}
FIELD_MANAGER = "hedgerow"
Body = dict[str, Any]


class ClusterError(Exception):
    """The cluster refused, or could not be reached; the text says what was tried and what it answered."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


def _ignore(verb: str, kind: str) -> None:
    """Count nothing."""


class Kube:
    """A cluster; `wrote` is told of every write, for the metrics."""

    def __init__(self, client: AsyncClient, wrote: Callable[[str, str], None] = _ignore) -> None:
        self._client: Any = client  # its overloads are by kind, and the kind is a value here
        self._wrote = wrote

    async def list(self, kind: str, namespace: str | None = None) -> list[Body]:
        """Return every object of a kind, of one namespace or of all."""
        arguments = {} if kind == "deviceclasses" else {"namespace": namespace or "*"}
        with _explained("list", kind, namespace or "every namespace"):
            return [_plain(item) async for item in self._client.list(KINDS[kind], chunk_size=500, **arguments)]

    async def get(self, kind: str, namespace: str | None, name: str) -> Body | None:
        """Return an object, or None if there is none of that name."""
        try:
            with _explained("get", kind, name):
                return _plain(await self._client.get(KINDS[kind], name, **_place(kind, namespace)))
        except ClusterError as problem:
            _raise_unless_gone(problem)
            return None

    async def create(self, kind: str, namespace: str | None, body: Body) -> Body | None:
        """Create an object; None if there is one of that name already."""
        self._wrote("create", kind)
        try:
            with _explained("create", kind, str(body["metadata"]["name"])):
                made = await self._client.create(KINDS[kind].from_dict(body), **_place(kind, namespace))
                return _plain(made)
        except ClusterError as problem:
            if problem.code == httpx2.codes.CONFLICT:
                return None
            raise

    async def patch(self, kind: str, namespace: str | None, name: str, change: Body) -> Body | None:
        """Merge a change into an object; None if it is gone."""
        return await self._patch(KINDS[kind], kind, namespace, name, change)

    async def patch_status(self, kind: str, namespace: str | None, name: str, status: Body) -> Body | None:
        """Merge into an object's status; None if it is gone."""
        return await self._patch(KINDS[kind].Status, f"{kind}/status", namespace, name, {"status": status})

    async def _patch(self, resource: Any, kind: str, namespace: str | None, name: str, change: Body) -> Body | None:
        self._wrote("patch", kind)
        place = _place(kind, namespace)
        try:
            with _explained("patch", kind, name):
                done = await self._client.patch(resource, name, change, patch_type=PatchType.MERGE, **place)
                return _plain(done)
        except ClusterError as problem:
            _raise_unless_gone(problem)
            return None

    async def delete(self, kind: str, namespace: str | None, name: str) -> None:
        """Delete an object and what it owns; nothing happens if it is gone."""
        self._wrote("delete", kind)
        try:
            with _explained("delete", kind, name):
                place = _place(kind, namespace)
                await self._client.delete(KINDS[kind], name, cascade=CascadeType.BACKGROUND, **place)
        except ClusterError as problem:
            _raise_unless_gone(problem)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def connect(wrote: Callable[[str, str], None] = _ignore, context: str | None = None) -> Kube:
    """Return the cluster this process is told of: by its service account, KUBECONFIG, or ~/.kube/config."""
    try:
        config = KubeConfig.from_env().get(context) if context else None
        return Kube(AsyncClient(config=config, field_manager=FIELD_MANAGER), wrote)
    except (ConfigError, OSError, ValueError) as problem:
        remedy = "set KUBECONFIG to a kubeconfig file, or run in a cluster with a service account"
        raise ClusterError(f"No cluster is configured ({problem}); {remedy}.") from problem


def default_namespace(context: str | None = None) -> str:
    """Return the namespace that the kubeconfig names, as kubectl would use it."""
    try:
        config = KubeConfig.from_env().get(context) if context else KubeConfig.from_env().get()
    except (ConfigError, OSError, ValueError) as problem:
        raise ClusterError(f"No cluster is configured ({problem}); set KUBECONFIG to a kubeconfig file.") from problem
    return (config.namespace if config else None) or "default"


def _place(kind: str, namespace: str | None) -> dict[str, str]:
    return {} if kind.startswith("deviceclasses") or namespace is None else {"namespace": namespace}


def _plain(item: Any) -> Body:
    """Return the object as JSON would have it; typed resources of lightkube know how."""
    if isinstance(item, NamespacedResource) or hasattr(item, "to_dict"):
        return dict(item.to_dict())
    return dict(item)


def _raise_unless_gone(problem: ClusterError) -> None:
    if problem.code != httpx2.codes.NOT_FOUND:
        raise problem


@contextmanager
def _explained(verb: str, kind: str, name: str) -> Iterator[None]:
    try:
        yield
    except ApiError as refused:
        code = refused.status.code
        raise ClusterError(
            f"The API server refused to {verb} {kind} {name}: {refused.status.message}", code
        ) from refused
    except httpx2.HTTPError as unreachable:
        reason = str(unreachable) or type(unreachable).__name__
        raise ClusterError(f"The API server did not answer ({verb} {kind} {name}): {reason}.") from unreachable
