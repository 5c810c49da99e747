"""The world as one decision sees it: jobs, classes, devices, programs and what was decided before, as plain values.

`gather` fills it, `decide` reads it. There is no cluster, broker or clock in here. What must survive a restart of the
operator but belongs into nobody's specification is called a memory: of a job, which generation its training has; of a
device, which document it was sent last, and which request to roll back is the newest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from hedgerow_plans.protocol.messages import ProgramReference, Reported, RollbackRequest, State
from hedgerow_plans.resources.device import DeviceSpec
from hedgerow_plans.resources.device_class import DeviceClassSpec
from hedgerow_plans.resources.reasons import PlannedReason
from hedgerow_plans.resources.training_job import TrainingJobSpec, TrainingJobStatus


@dataclass(frozen=True, slots=True)
class JobMemory:
    """What was decided about a job's training; editing a rollback request or `suspend` must not train anew."""

    generation: int  # that devices are told
    training_digest: str
    programs: tuple[tuple[str, str], ...] = ()  # device class and execution plan, settled for this generation
    rollback_request_id: str | None = None
    rollback_generation: int = 0
    digests: tuple[tuple[str, str], ...] = ()  # device class and sha256 of its settled program


@dataclass(frozen=True, slots=True)
class Job:
    """A TrainingJob."""

    name: str
    uid: str
    generation: int
    created: str  # ISO 8601: sorts by time
    spec: TrainingJobSpec | None  # None: `problem` says what is wrong with it
    status: TrainingJobStatus = field(default_factory=TrainingJobStatus)
    memory: JobMemory | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """What a device was sent last, and the newest request to roll it back."""

    sequence: int = 0
    payload_sha256: str = ""
    job_uid: str | None = None  # the job it belongs to
    seen_device_request: str | None = None
    seen_job_request: str | None = None
    rollback: RollbackRequest | None = None
    rollback_assignment: str = ""  # "uid/generation" for which the request holds


@dataclass(frozen=True, slots=True)
class Device:
    """A Device: what people want of it, and what it says about itself."""

    name: str
    labels: Mapping[str, str]
    spec: DeviceSpec
    state: State | None = None
    reported: Reported | None = None
    memory: DeviceMemory = DeviceMemory()


@dataclass(frozen=True, slots=True)
class Ready:
    """A program that was verified and is published."""

    plan: str  # the name of its ExecutionPlan
    reference: ProgramReference


@dataclass(frozen=True, slots=True)
class Underway:
    """A program that is being planned, or read back after a restart."""


@dataclass(frozen=True, slots=True)
class Impossible:
    """No program, and why, with the numbers."""

    reason: PlannedReason
    message: str


ProgramState = Ready | Underway | Impossible


@dataclass(frozen=True, slots=True)
class World:
    """One fleet at one moment."""

    fleet: str
    jobs: tuple[Job, ...] = ()
    devices: tuple[Device, ...] = ()
    classes: Mapping[str, DeviceClassSpec] = field(default_factory=lambda: MappingProxyType({}))
    models: frozenset[str] = frozenset()
    programs: Mapping[tuple[str, str], ProgramState] = field(default_factory=lambda: MappingProxyType({}))
    """By the job's uid and the device class; what is missing was never asked for."""
