"""What a decision asks for: plain values that `perform` carries out, in the order in which they are given."""

from dataclasses import dataclass

from hedgerow_operator.world import DeviceMemory, JobMemory
from hedgerow_plans.protocol.messages import Desired
from hedgerow_plans.resources.conditions import Condition
from hedgerow_plans.resources.device import DeviceStatus
from hedgerow_plans.resources.reasons import EventReason, JobState


@dataclass(frozen=True, slots=True)
class PlanProgram:
    """A job needs a program for a class of devices."""

    job: str
    device_class: str


@dataclass(frozen=True, slots=True)
class RememberJob:
    """Write down what was decided about a job's training; everything after it relies on that."""

    job: str
    memory: JobMemory


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Tell a device what is wanted of it, under a sequence number that has never been used for anything else."""

    device: str
    desired: Desired
    memory: DeviceMemory  # written down before anything is published


@dataclass(frozen=True, slots=True)
class Counts:
    """How a job's devices stand."""

    matched: int = 0
    approved: int = 0
    pending: int = 0
    training: int = 0
    completed: int = 0
    failed: int = 0
    rejected: int = 0
    held: int = 0
    offline: int = 0


@dataclass(frozen=True, slots=True)
class PlanInUse:
    """Which execution plan a class of devices follows."""

    device_class: str
    plan: str
    digest: str


@dataclass(frozen=True, slots=True)
class SetJobStatus:
    """What a job's status should say."""

    job: str
    observed_generation: int
    state: JobState
    conditions: tuple[Condition, ...]
    counts: Counts
    training_generation: int = 0
    training_digest: str = ""
    progress_percent: int = 0
    accuracy_before: str | None = None
    accuracy_now: str | None = None
    start_time: str | None = None
    completion_time: str | None = None
    plans: tuple[PlanInUse, ...] = ()


@dataclass(frozen=True, slots=True)
class SetDeviceStatus:
    """What a device's status should say, apart from when it was last seen."""

    device: str
    status: DeviceStatus


@dataclass(frozen=True, slots=True)
class Tell:
    """An event that a person would want to be told."""

    job: str
    reason: EventReason
    message: str
    is_warning: bool = False


@dataclass(frozen=True, slots=True)
class CheckAgain:
    """Nothing will happen by itself, but time alone changes the answer."""

    after_seconds: float


Action = PlanProgram | RememberJob | Dispatch | SetJobStatus | SetDeviceStatus | Tell | CheckAgain
