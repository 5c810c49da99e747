"""What a device says about itself, made from its state. Pure."""

from hedgerow_agent.machine.state import MachineState
from hedgerow_plans.protocol.messages import MOST_CHECKPOINTS, Reported, Telemetry

_MOST_NAMED = MOST_CHECKPOINTS + 2
"""The kept ones, one that was just written, and one that is kept because the device runs it."""


def reported(state: MachineState) -> Reported:
    """Return the device's twin."""
    return Reported(
        epoch=state.volatile.epoch,
        observed_sequence=state.observed_sequence,
        job_uid=state.job.job_uid if state.job and state.assignment else None,
        generation=state.job.generation if state.job and state.assignment else None,
        phase=state.phase,
        reason="StorageFull" if state.volatile.storage_error else state.reason,
        message=state.volatile.storage_error or state.message,
        running=state.running_name,
        progress=state.progress,
        checkpoints=state.checkpoints[-_MOST_NAMED:],
        rollback=state.rollback,
        refusal=state.refusal,
        crashes=state.crashes,
        footprint_bytes=state.footprint_bytes,
    )


def telemetry(state: MachineState, rss_bytes: int) -> Telemetry:
    """Return a sample of the moment."""
    return Telemetry(
        epoch=state.volatile.epoch,
        job_uid=state.job.job_uid if state.job and state.assignment else None,
        phase=state.phase,
        progress=state.progress,
        checkpoints_written=state.checkpoints_written,
        rollbacks=state.rollbacks,
        rss_bytes=rss_bytes,
    )


def twin_without_counters(state: MachineState) -> Reported:
    """Return the twin without what moves at every batch, to see whether there is news."""
    twin = reported(state)
    if twin.progress is None:
        return twin
    still = twin.progress.energy.model_copy(update={"microjoules": 0})
    update = {"step": 0, "loss": None, "energy": still}
    return twin.model_copy(update={"progress": twin.progress.model_copy(update=update)})
