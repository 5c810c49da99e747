"""A device's status, folded from its birth, its twin, and what was decided about it.

A report that passed the inbox and still does not fit a status is left out and said so: it is retained at the broker, so
an error here would come back at every look and keep the whole fleet from its work.
"""

import dataclasses

from pydantic import ValidationError

from hedgerow_operator.decide.claims import OpenJob
from hedgerow_operator.decide.rollbacks import result_of
from hedgerow_operator.decide.standing import is_online, unsupported
from hedgerow_operator.world import Device, DeviceMemory
from hedgerow_plans.protocol.messages import Phase, Progress, Reported
from hedgerow_plans.resources import device as resources
from hedgerow_plans.resources.columns import device_columns, format_accuracy


def fold(device: Device, claimed: OpenJob | None, memory: DeviceMemory) -> resources.DeviceStatus:
    """Return what the device's status should say; when it was last seen is added by whoever writes it."""
    try:
        return _fold(device, claimed, memory)
    except ValidationError as problem:
        silent = _fold(dataclasses.replace(device, reported=None), claimed, memory)
        detail = problem.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in detail["loc"])
        text = f"The device's report cannot be shown: {problem.title} {where}: {detail['msg']}."
        return silent.model_copy(update={"reason": "ReportUnusable", "message": text[:1024]})


def _fold(device: Device, claimed: OpenJob | None, memory: DeviceMemory) -> resources.DeviceStatus:
    reported, state = device.reported, device.state
    reason, message = _why(device)
    status = resources.DeviceStatus(
        connection=state.state if state else "unknown",
        state=_word(device),
        phase=reported.phase if reported else None,
        reason=reason,
        message=message,
        job=claimed.job.name if claimed else "",
        agent=_agent(device),
        rollback=_rollback(device, memory),
        **(_twin(reported) if reported else {}),
    )
    return status.model_copy(update={"columns": device_columns(status)})


def _word(device: Device) -> str:
    """Return the STATE column: the phase of a device that is there, else what became of it."""
    if not device.spec.approved:
        return "Unapproved"
    if unsupported(device):
        return "Unsupported"
    if not is_online(device):
        return device.state.state.capitalize() if device.state else "Unknown"
    return str(device.reported.phase) if device.reported else str(Phase.IDLE)


def _why(device: Device) -> tuple[str, str]:
    if not device.spec.approved:
        return "NotApproved", f"Approve it with `kubectl hedgerow approve device/{device.name}`."
    if problem := unsupported(device):
        return "Unsupported", f"The device gets no work: {problem}."
    if device.reported is None:
        return "NothingReported", ""
    return device.reported.reason, device.reported.message


def _agent(device: Device) -> resources.DeviceAgent | None:
    state = device.state
    if state is None or state.agent_version is None:
        return None
    return resources.DeviceAgent(
        version=state.agent_version,
        program_schema=state.program_schema or 0,
        kernel_table=state.kernel_table or 0,
        backend=state.backend or "",
    )


def _rollback(device: Device, memory: DeviceMemory) -> resources.DeviceRollback | None:
    """Return the newest request with its result, or what the device says about an earlier one."""
    said = device.reported.rollback if device.reported else None
    asked = memory.rollback
    if asked is not None and (said is None or said.request_id != asked.request_id):
        running = device.reported.running if device.reported else ""
        result = result_of(device, asked.request_id)
        return resources.DeviceRollback(request_id=asked.request_id, result=result, running=running)
    if said is None:
        return None
    return resources.DeviceRollback(
        request_id=said.request_id, result=said.result, running=said.running, message=said.message
    )


def _twin(reported: Reported) -> dict[str, object]:
    refusal = reported.refusal
    return {
        "generation": reported.generation or 0,
        "checkpoint": reported.checkpoints[-1].id if reported.checkpoints else "",
        "checkpoints": tuple(
            resources.DeviceCheckpoint(
                id=entry.id,
                step=entry.step,
                sha256=entry.sha256,
                size_bytes=entry.size_bytes,
                accuracy=_decimal(entry.accuracy),
            )
            for entry in reported.checkpoints
        ),
        "running": reported.running,
        "refusal": refusal
        and resources.DeviceRefusal(count=refusal.count, reason=refusal.reason, message=refusal.message),
        "crashes": reported.crashes,
        "observed_sequence": reported.observed_sequence,
        **(_progress(reported.progress) if reported.progress else {}),
    }


def _progress(progress: Progress) -> dict[str, object]:
    return {
        "rung": progress.rung,
        "rungs": progress.rungs,
        "memory": resources.DeviceMemory(
            planned=progress.memory.planned_bytes,
            measured=progress.memory.measured_bytes,
            budget=progress.memory.budget_bytes,
        ),
        "accuracy": resources.DeviceAccuracy(
            before=_decimal(progress.accuracy_before),
            now=_decimal(progress.accuracy_now),
            after=_decimal(progress.accuracy_after),
        ),
        "energy": resources.DeviceEnergy(microjoules=progress.energy.microjoules, source=progress.energy.source),
        "progress_percent": min(100, 100 * progress.step // progress.total_steps) if progress.total_steps else 0,
    }


def _decimal(value: float | None) -> str | None:
    return None if value is None else format_accuracy(value)
