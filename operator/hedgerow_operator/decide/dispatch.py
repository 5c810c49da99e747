"""What each device is told: its assignment, what it may use, and the request to roll back that counts.

A document gets a new sequence number exactly when its content changes. The number and the content's digest are written
down before anything is published, so that an operator that is killed in between sends the same bytes again, and the
number never goes back: an unchanged document keeps its number, a changed one gets a higher one than any that was
written down or that the device has seen. A device without a record (new, or deleted and back) starts from the clock, so
that even a lost record does not lead to a number that was used before.
"""

import dataclasses
import hashlib

from hedgerow_operator.actions import Dispatch
from hedgerow_operator.decide.claims import OpenJob
from hedgerow_operator.decide.rollbacks import remember_requests
from hedgerow_operator.world import Device, DeviceMemory, Ready, World
from hedgerow_plans import asked
from hedgerow_plans.protocol.envelope import payload_text
from hedgerow_plans.protocol.messages import Assignment, Desired, WeightsReference

MAX_SEQUENCE = 2**52
"""A device that claims to have seen more than this is not believed."""


def dispatch(
    device: Device, claimed: OpenJob | None, home: OpenJob | None, world: World, now: float
) -> Dispatch | None:
    """Return the document for a device, or None if nothing may be said about it now."""
    if not device.spec.approved and device.memory.sequence == 0:
        return None  # never had work, so there is nothing to stop
    assignment = None
    if claimed is not None:
        assignment = _assignment(claimed, device, world)
        if assignment is None and device.memory.job_uid == claimed.job.uid:
            return None  # its program is on its way back from the cluster; what the device has is still right
    memory = remember_requests(device, claimed or home)
    device_class = world.classes.get(device.spec.device_class)
    desired = Desired(
        assignment=assignment,
        allowance_bytes=device_class.allowance_bytes if device_class else None,
        override_bytes=device.spec.override_bytes,
        rollback=memory.rollback,
    )
    return Dispatch(device.name, desired, _numbered(memory, device, desired, now))


def _assignment(entry: OpenJob, device: Device, world: World) -> Assignment | None:
    program = world.programs.get((entry.job.uid, device.spec.device_class))
    if not isinstance(program, Ready):
        return None
    spec = entry.spec
    return Assignment(
        job_uid=entry.job.uid,
        job_name=entry.job.name,
        generation=entry.memory.generation,
        program=program.reference,
        weights=WeightsReference(uri=spec.model.weights.uri, sha256=spec.model.weights.sha256),
        dataset=spec.dataset,
        epochs=spec.training.epochs,
        seed=spec.training.seed,
        learning_rate=spec.training.optimizer.learning_rate,
        schedule=asked.schedule(spec.training),
        backend=asked.backend(spec.training),
        augmentation=asked.augmentation(spec.training),
        checkpoint_every_steps=spec.checkpoint.every_steps,
        checkpoints_kept=spec.checkpoint.keep,
    )


def _numbered(memory: DeviceMemory, device: Device, desired: Desired, now: float) -> DeviceMemory:
    digest = hashlib.sha256(payload_text(desired).encode()).hexdigest()
    seen = device.reported.observed_sequence if device.reported else 0
    seen = seen if seen <= MAX_SEQUENCE else 0
    if digest == memory.payload_sha256 and seen <= memory.sequence:
        return memory
    highest = max(memory.sequence, seen, 0 if memory.sequence else int(now))
    return dataclasses.replace(memory, sequence=highest + 1, payload_sha256=digest)
