"""Programs in the cluster: an ExecutionPlan with the summary, owned by its jobs, and ConfigMaps with the bytes.

The ExecutionPlan comes first because it owns the ConfigMaps; one without all its parts is completed or made again.
"""

import base64
import binascii
import hashlib
import zlib
from dataclasses import dataclass

from hedgerow_operator.kube import Body, Kube
from hedgerow_operator.planning.worker import Planned
from hedgerow_plans.protocol.parts import MAX_ENCODED_BYTES
from hedgerow_plans.resources.common import API_VERSION
from hedgerow_plans.resources.execution_plan import ExecutionPlan, ExecutionPlanSpec
from hedgerow_plans.resources.parsing import Unparsable, parse_resource

PART_BYTES = 640 * 1024
"""In base64 this stays below 900 KiB; etcd refuses objects above 1.5 MiB."""

PART_FIELD = "program.zlib"


@dataclass(frozen=True, slots=True)
class Kept:
    """A program as it is kept: the name of its ExecutionPlan, its key, and itself."""

    name: str
    key: str
    planned: Planned


async def load(kube: Kube, namespace: str, name: str) -> tuple[ExecutionPlanSpec, bytes] | None:
    """Return an ExecutionPlan's spec and the encoded program, or None if any of it is missing or altered."""
    body = await kube.get("executionplans", namespace, name)
    plan = parse_resource(ExecutionPlan, body) if body else None
    if plan is None or isinstance(plan, Unparsable):
        return None
    compressed = b""
    for part in plan.spec.parts:
        found = await kube.get("configmaps", namespace, part)
        compressed += _part(found)
    encoded = _decompress(compressed)
    if hashlib.sha256(encoded).hexdigest() != plan.spec.digest:
        return None
    return plan.spec, encoded


def is_summary(spec: ExecutionPlanSpec, planned: Planned) -> bool:
    """Whether an ExecutionPlan says of its program what is true."""
    return spec == _spec(spec.key, planned, spec.parts, spec.compressed_bytes)


async def keep(kube: Kube, namespace: str, kept: Kept, owner: Body) -> None:
    """Write a program down; what is there already stays, unless it is another program or not whole."""
    name = kept.name
    compressed = zlib.compress(kept.planned.encoded, 9)
    pieces = [compressed[start : start + PART_BYTES] for start in range(0, len(compressed), PART_BYTES)]
    names = tuple(f"{name}-{number}" for number in range(len(pieces)))
    wanted = _plan_body(namespace, name, _spec(kept.key, kept.planned, names, len(compressed)), owner)
    made = await kube.create("executionplans", namespace, wanted)
    if made is None:
        made = await _adopt_or_replace(kube, namespace, wanted)
    for part, piece in zip(names, pieces, strict=True):
        await _keep_part(kube, namespace, _part_body(namespace, part, piece, made))


async def _keep_part(kube: Kube, namespace: str, wanted: Body) -> None:
    """Write one part down; another content under its name makes way, since it cannot be edited."""
    name = wanted["metadata"]["name"]
    if await kube.create("configmaps", namespace, wanted) is not None:
        return
    if _part(await kube.get("configmaps", namespace, name)) != _part(wanted):
        await kube.delete("configmaps", namespace, name)
        await kube.create("configmaps", namespace, wanted)


async def _adopt_or_replace(kube: Kube, namespace: str, wanted: Body) -> Body:
    name = wanted["metadata"]["name"]
    found = await kube.get("executionplans", namespace, name)
    if found is not None and all(found["spec"].get(name) == value for name, value in wanted["spec"].items()):
        return found
    await kube.delete("executionplans", namespace, name)
    for part in found["spec"]["parts"] if found else ():
        await kube.delete("configmaps", namespace, part)
    return await kube.create("executionplans", namespace, wanted) or wanted


async def own(kube: Kube, namespace: str, name: str, owner: Body) -> bool:
    """Make a job an owner of an ExecutionPlan; False if the ExecutionPlan is gone."""
    found = await kube.get("executionplans", namespace, name)
    if found is None or found["metadata"].get("deletionTimestamp"):
        return False
    owners = list(found["metadata"].get("ownerReferences", ()))
    if any(entry["uid"] == owner["uid"] for entry in owners):
        return True
    version = found["metadata"]["resourceVersion"]  # two jobs at once must not overwrite each other
    change = {"metadata": {"resourceVersion": version, "ownerReferences": [*owners, owner]}}
    return await kube.patch("executionplans", namespace, name, change) is not None


def job_owner(name: str, uid: str) -> Body:
    """Return the reference by which a job owns a plan."""
    return {"apiVersion": API_VERSION, "kind": "TrainingJob", "name": name, "uid": uid}


def _spec(key: str, planned: Planned, parts: tuple[str, ...], compressed_bytes: int) -> ExecutionPlanSpec:
    summary = planned.summary
    return ExecutionPlanSpec(
        key=key,
        digest=summary.digest,
        model=summary.model,
        method=summary.method,
        device_class=summary.device_class,
        kernel_table=summary.kernel_table,
        batch_size=summary.batch_size,
        rungs=summary.rungs,
        floor_bytes=summary.floor_bytes,
        peak_bytes=summary.peak_bytes,
        gap_percent=summary.gap_percent,
        parts=parts,
        encoded_bytes=len(planned.encoded),
        compressed_bytes=compressed_bytes,
        columns=summary.columns,
    )


def _plan_body(namespace: str, name: str, spec: ExecutionPlanSpec, owner: Body) -> Body:
    metadata = {"name": name, "namespace": namespace, "ownerReferences": [owner]}
    return {"apiVersion": API_VERSION, "kind": "ExecutionPlan", "metadata": metadata, "spec": spec.to_yaml_form()}


def _part_body(namespace: str, name: str, piece: bytes, plan: Body) -> Body:
    metadata = plan["metadata"]
    owner = {"apiVersion": API_VERSION, "kind": "ExecutionPlan", "name": metadata["name"], "uid": metadata.get("uid")}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "ownerReferences": [owner],
            "labels": {"app.kubernetes.io/managed-by": "hedgerow"},
        },
        "immutable": True,
        "binaryData": {PART_FIELD: base64.b64encode(piece).decode()},
    }


def _part(body: Body | None) -> bytes:
    try:
        return base64.b64decode((body or {})["binaryData"][PART_FIELD], validate=True)
    except (KeyError, TypeError, binascii.Error):
        return b""


def _decompress(compressed: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(compressed, MAX_ENCODED_BYTES)
    except zlib.error:
        return b""
