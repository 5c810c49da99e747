"""How one device stands towards one job: one word, from what the device says and what was asked of it."""

from dataclasses import dataclass
from enum import StrEnum

from hedgerow_operator.world import Device, Impossible, Job, ProgramState, Ready
from hedgerow_plans.plan import KERNEL_TABLE, PROGRAM_SCHEMA
from hedgerow_plans.protocol.messages import Phase, Progress, Reported


class Stand(StrEnum):
    """How a device stands towards a job."""

    UNAPPROVED = "unapproved"
    UNSUPPORTED = "unsupported"  # its agent speaks another program schema or kernel table
    UNPLANNABLE = "unplannable"  # there is no program for its class
    BUSY = "busy"  # another job has it
    UNPLANNED = "unplanned"  # the program is being computed
    PENDING = "pending"  # asked, and has not answered for this generation
    PREPARING = "preparing"
    TRAINING = "training"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    REJECTED = "rejected"
    HELD = "held"


ENDED = frozenset({Stand.COMPLETED, Stand.FAILED, Stand.REJECTED})
"""The device has come to an end with the job's generation by itself."""

REFUSED = frozenset({Stand.UNSUPPORTED, Stand.UNPLANNABLE, Stand.REJECTED})
"""The job cannot be done on this device, however often it is tried."""

_BY_PHASE = {
    Phase.IDLE: Stand.PENDING,
    Phase.PREPARING: Stand.PREPARING,
    Phase.TRAINING: Stand.TRAINING,
    Phase.PAUSED: Stand.PAUSED,
    Phase.COMPLETED: Stand.COMPLETED,
    Phase.FAILED: Stand.FAILED,
    Phase.REJECTED: Stand.REJECTED,
    Phase.HELD: Stand.HELD,
}


@dataclass(frozen=True, slots=True)
class Member:
    """A device that a job selects, and how it stands."""

    device: Device
    stand: Stand
    busy_with: str | None = None  # the job that has it

    @property
    def is_online(self) -> bool:
        """Whether the device can be reached; a sleeping one will come by itself."""
        return is_online(self.device)


def is_online(device: Device) -> bool:
    """Whether the device is there or only asleep."""
    return device.state is not None and device.state.state in {"online", "sleeping"}


def report_for(device: Device, job: Job, generation: int) -> Reported | None:
    """Return the device's report if it speaks of this generation of the job's training."""
    reported = device.reported
    if reported is None or reported.job_uid != job.uid or reported.generation != generation:
        return None
    return reported


def progress_for(device: Device, job: Job, generation: int) -> Progress | None:
    """Return how far the device is with this generation of the job's training."""
    reported = report_for(device, job, generation)
    return reported.progress if reported else None


def unsupported(device: Device) -> str | None:
    """Return why a device's agent cannot run our programs, if it cannot."""
    state = device.state
    if state is None:
        return None
    for what, spoken, ours in (
        ("program schema", state.program_schema, PROGRAM_SCHEMA),
        ("kernel table", state.kernel_table, KERNEL_TABLE),
    ):
        if spoken is not None and spoken != ours:
            version = state.agent_version or "unknown"
            return f"its agent (version {version}) speaks {what} {spoken}, and this operator writes {what} {ours}"
    return None


def stand_of(device: Device, job: Job, generation: int, holder: str | None, program: ProgramState | None) -> Stand:
    """Return how a device that the job selects stands; `holder` is the uid of the job that has it."""
    if not device.spec.approved:
        return Stand.UNAPPROVED
    reported = report_for(device, job, generation)
    stand = _BY_PHASE[reported.phase] if reported else Stand.PENDING
    if stand in ENDED or stand is Stand.HELD:
        return stand
    if unsupported(device):
        return Stand.UNSUPPORTED
    if isinstance(program, Impossible):
        return Stand.UNPLANNABLE
    if holder is not None and holder != job.uid:
        return Stand.BUSY
    return stand if isinstance(program, Ready) or reported else Stand.UNPLANNED
