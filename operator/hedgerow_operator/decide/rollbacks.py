"""Which request to roll back counts, and what became of it.

A device hears of two kinds: its own and its job's. Requests carry no time, so the newest is the one that was not there
before: the ids that were seen are remembered. A request holds for the assignment under which it came; a new generation
of the training, or another job, ends it, because that is asked for later.
"""

import dataclasses
from collections.abc import Sequence

from hedgerow_operator.decide.claims import OpenJob
from hedgerow_operator.decide.standing import Member, Stand
from hedgerow_operator.decide.wording import listed, plural
from hedgerow_operator.world import Device, DeviceMemory
from hedgerow_plans.protocol.messages import RollbackRequest, RollbackResult
from hedgerow_plans.resources import rollback as resources
from hedgerow_plans.resources.conditions import ConditionStatus
from hedgerow_plans.resources.reasons import RolledBackReason

DONE = frozenset({RollbackResult.COMPLETE, RollbackResult.NO_STATE_CHANGE})
_UNTOLD = frozenset({Stand.UNAPPROVED, Stand.UNSUPPORTED, Stand.UNPLANNABLE, Stand.BUSY, Stand.UNPLANNED})
"""Devices that have no assignment of the job, and so never hear of its requests."""

Verdict = tuple[ConditionStatus, RolledBackReason, str]


def job_request(entry: OpenJob | None) -> resources.RollbackRequest | None:
    """Return the job's request, unless it was made for an earlier generation of the training."""
    if entry is None or entry.spec.rollback is None:
        return None
    return entry.spec.rollback.request if entry.memory.rollback_generation == entry.memory.generation else None


def remember_requests(device: Device, entry: OpenJob | None) -> DeviceMemory:
    """Return the device's memory with the newest request in it, for the job that the device belongs to."""
    memory = device.memory
    assignment = f"{entry.job.uid}/{entry.memory.generation}" if entry else ""
    rollback = memory.rollback if memory.rollback_assignment == assignment else None
    of_job, of_device = job_request(entry), device.spec.rollback
    seen_job = f"{assignment}/{of_job.request_id}" if of_job else None
    if of_job and seen_job != memory.seen_job_request:
        rollback = RollbackRequest(to=of_job.to, request_id=of_job.request_id)
    if of_device and of_device.request_id != memory.seen_device_request:  # the more particular one wins
        rollback = RollbackRequest(to=of_device.to, request_id=of_device.request_id)
    return dataclasses.replace(
        memory,
        job_uid=entry.job.uid if entry else None,
        seen_device_request=of_device.request_id if of_device else None,
        seen_job_request=seen_job or memory.seen_job_request,
        rollback=_released(rollback, device),
        rollback_assignment=assignment,
    )


def _released(rollback: RollbackRequest | None, device: Device) -> RollbackRequest | None:
    """Mark the request as released if the device's release names it."""
    if rollback is None:
        return None
    release = device.spec.release
    return rollback.model_copy(update={"released": release is not None and release.request_id == rollback.request_id})


def result_of(device: Device, request_id: str) -> RollbackResult:
    """Return what the device says about a request; silence means that it is pending."""
    report = device.reported.rollback if device.reported else None
    return report.result if report and report.request_id == request_id else RollbackResult.PENDING


def judge_rollback(entry: OpenJob, members: Sequence[Member]) -> Verdict:
    """Return the `RolledBack` condition: the job's newest request, over the devices that have taken part."""
    request = job_request(entry)
    if request is None:
        return _judge_single_devices(members)
    involved = [member for member in members if member.stand not in _UNTOLD]
    results = {member.device.name: result_of(member.device, request.request_id) for member in involved}
    unable = [name for name, result in results.items() if result is RollbackResult.UNABLE]
    done = [name for name, result in results.items() if result in DONE]
    asked = f"request {request.request_id} (to {request.to})"
    if unable:
        text = f"{plural(len(unable), 'device')} could not obey {asked}: {listed(unable)}."
        return ConditionStatus.FALSE, RolledBackReason.UNABLE, text
    if involved and len(done) == len(involved):
        text = f"{len(done)} of {plural(len(involved), 'device')} obeyed {asked}."
        return ConditionStatus.TRUE, RolledBackReason.COMPLETE, text
    waiting = [name for name in results if name not in done]
    text = f"{len(done)} of {plural(len(involved), 'device')} obeyed {asked}; waiting for {listed(waiting)}."
    return ConditionStatus.UNKNOWN, RolledBackReason.PENDING, text


def _judge_single_devices(members: Sequence[Member]) -> Verdict:
    held = [m.device.name for m in members if m.stand is Stand.HELD]
    text = "No rollback of the whole job was requested"
    text += f"; {plural(len(held), 'device')} rolled back alone: {listed(held)}." if held else "."
    return ConditionStatus.FALSE, RolledBackReason.NOT_REQUESTED, text
