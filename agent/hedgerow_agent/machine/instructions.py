"""What the shells around the machine are asked to do, in this order within one answer.

What destroys comes before the state that forgets it (a power cut in between repeats it); what announces comes after.
"""

from dataclasses import dataclass

from hedgerow_agent.machine.state import Adapter, JobKey
from hedgerow_plans.protocol.messages import Assignment, ProgramReference


@dataclass(frozen=True, slots=True)
class DropProgress:
    """Remove the resume file if it is later than this step."""

    job: JobKey
    after_step: int


@dataclass(frozen=True, slots=True)
class DropCheckpoints:
    """Remove the checkpoints after this step, because training goes another way from here."""

    job: JobKey
    after_step: int


@dataclass(frozen=True, slots=True)
class SaveState:
    """Make the state durable before anything below is done."""


@dataclass(frozen=True, slots=True)
class FetchProgram:
    """Get the program into the store: from the store itself, or by its retained parts."""

    reference: ProgramReference


@dataclass(frozen=True, slots=True)
class StopFetching:
    """Nobody waits for program parts any more."""


@dataclass(frozen=True, slots=True)
class LocateInputs:
    """Find weights and data, and see which checkpoints of the job are good."""

    assignment: Assignment


@dataclass(frozen=True, slots=True)
class StartTrainer:
    """Start the child; the resume file comes first, then `from_checkpoint`, then the base model."""

    assignment: Assignment
    from_checkpoint: str | None


@dataclass(frozen=True, slots=True)
class TellTrainer:
    """Tell the child its budget."""

    budget_bytes: int | None


@dataclass(frozen=True, slots=True)
class StopTrainer:
    """End the child, by force if it does not listen."""


@dataclass(frozen=True, slots=True)
class SwapAdapter:
    """Check the adapter's file and make it the active one, atomically."""

    adapter: Adapter


@dataclass(frozen=True, slots=True)
class PublishReported:
    """The twin has changed: say so."""


@dataclass(frozen=True, slots=True)
class PublishTelemetry:
    """Something worth a sample happened."""


@dataclass(frozen=True, slots=True)
class RemoveCheckpoints:
    """Remove the files of these checkpoints; named, because the trainer may be writing another one right now."""

    job: JobKey
    checkpoints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ForgetOtherJobs:
    """Remove what is left of other jobs and generations, now that this one's delta runs."""

    running: Adapter


Instruction = (
    DropProgress
    | DropCheckpoints
    | SaveState
    | FetchProgram
    | StopFetching
    | LocateInputs
    | StartTrainer
    | TellTrainer
    | StopTrainer
    | SwapAdapter
    | PublishReported
    | PublishTelemetry
    | RemoveCheckpoints
    | ForgetOtherJobs
)
