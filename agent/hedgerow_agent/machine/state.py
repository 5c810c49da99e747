"""What a device knows about itself. The first part survives a power cut, the second is found out again."""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from pydantic import TypeAdapter

from hedgerow_plans.protocol.messages import (
    Assignment,
    CheckpointReport,
    Desired,
    Phase,
    Progress,
    Refusal,
    RollbackReport,
    WeightsReference,
)

BASE = "base"
"""What a device without a delta runs, in reports and in rollback requests."""

CRASH_LIMIT = 3
"""Crashes of the trainer on one generation after which the device goes back and stops trying."""

ACTIVE = frozenset({Phase.PREPARING, Phase.TRAINING, Phase.PAUSED})
"""Phases in which a device works on its assignment, or will by itself."""


@dataclass(frozen=True, slots=True)
class JobKey:
    """What makes an assignment the same one: redelivery of it is no news."""

    job_uid: str
    generation: int


@dataclass(frozen=True, slots=True)
class Adapter:
    """Something a device can run: a base model, with a checkpoint's delta on top of it or without."""

    job: JobKey
    checkpoint: str | None  # None: the base model alone
    program_digest: str
    weights: WeightsReference
    seed: int  # of parameters that no weights file brings


class Purpose(StrEnum):
    """Why the device is going back."""

    REQUEST = "request"  # somebody asked
    RECOVERY = "recovery"  # the trainer crashed too often, or training diverged


@dataclass(frozen=True, slots=True)
class GoingBack:
    """A return to an earlier adapter that has not happened yet: what to try, best first. Base is None."""

    purpose: Purpose
    candidates: tuple[str | None, ...]
    hold: bool  # was working on its assignment, so that staying there is a change in itself
    from_running: str  # what ran, and how far training was, when this began: a power cut in the middle
    from_step: int  # must not change the answer


class Trainer(StrEnum):
    """The child process as far as the agent knows."""

    ABSENT = "absent"
    RUNNING = "running"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class Volatile:
    """What is found out again after a restart."""

    epoch: int = 0
    connected: bool = False
    trainer: Trainer = Trainer.ABSENT
    trainer_job: JobKey | None = None
    trainer_ready: bool = False  # it waits for, or has, a budget
    trainer_error: str = ""  # its last words
    program_asked: bool = False
    program_ready: bool = False
    program_damaged: bool = False  # asked for again at the next tick
    inputs_asked: bool = False
    inputs_ready: bool = False
    swapping: Adapter | None = None
    cgroup_limit_bytes: int | None = None
    agent_footprint_bytes: int = 0
    storage_error: str = ""  # why the disk cannot be written right now
    told_budget: tuple[int | None] | None = None  # None: nothing told yet


@dataclass(frozen=True, slots=True)
class MachineState:
    """Everything the next decision depends on."""

    observed_sequence: int = 0
    observed_sha256: str = ""  # of the envelope with that sequence; empty: none was ever accepted
    desired: Desired = field(default_factory=Desired)
    job: JobKey | None = None  # what checkpoints, progress and crashes below speak of
    job_program_digest: str = ""
    job_weights: WeightsReference | None = None
    job_seed: int = 0
    phase: Phase = Phase.IDLE
    reason: str = "NoAssignment"
    message: str = ""
    ended: Phase | None = None  # how the job above ended here, remembered while it is not assigned
    ended_reason: str = ""
    ended_message: str = ""
    running: Adapter | None = None  # None: no model ever arrived
    checkpoints: tuple[CheckpointReport, ...] = ()  # oldest first
    progress: Progress | None = None
    going_back: GoingBack | None = None
    rollback: RollbackReport | None = None
    refusal: Refusal | None = None
    crashes: int = 0
    checkpoints_written: int = 0
    rollbacks: int = 0
    footprint_bytes: int | None = None
    volatile: Volatile = Volatile()

    @property
    def assignment(self) -> Assignment | None:
        """What the operator wants trained."""
        return self.desired.assignment

    @property
    def running_checkpoint(self) -> str | None:
        """The checkpoint of this job that runs now; None for the base model and for another job's."""
        return self.running.checkpoint if self.running is not None and self.running.job == self.job else None

    @property
    def running_name(self) -> str:
        """What runs now, as reports say it; an adapter of another job or generation is spelled out."""
        if self.running is None or self.running.checkpoint is None:
            return BASE
        if self.running.job == self.job:
            return self.running.checkpoint
        return f"{self.running.job.job_uid[:64]}.{self.running.job.generation}.{self.running.checkpoint}"

    def with_volatile(self, **changes: object) -> "MachineState":
        """Return the state with some of its volatile part changed."""
        return replace(self, volatile=replace(self.volatile, **changes))  # type: ignore[arg-type]

    def in_phase(self, phase: Phase, reason: str, message: str = "") -> "MachineState":
        """Return the state in another phase."""
        return replace(self, phase=phase, reason=reason, message=message)

    def ended_in(self, phase: Phase, reason: str, message: str) -> "MachineState":
        """Return the state in a phase that only a person or a new generation ends."""
        return replace(self.in_phase(phase, reason, message), ended=phase, ended_reason=reason, ended_message=message)

    def adapter(self, checkpoint: str | None) -> Adapter | None:
        """Return one of this job's adapters, or None before any job came."""
        if self.job is None or self.job_weights is None:
            return None
        return Adapter(self.job, checkpoint, self.job_program_digest, self.job_weights, self.job_seed)


STORED: TypeAdapter[MachineState] = TypeAdapter(MachineState)
"""Reads and writes the state as JSON; the volatile part is reset on the way in by the `Restarted` event."""


def key_of(assignment: Assignment) -> JobKey:
    """Return what identifies an assignment."""
    return JobKey(assignment.job_uid, assignment.generation)
