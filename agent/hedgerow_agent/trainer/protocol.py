"""What the agent and its trainer say to each other: one JSON document per line over the child's stdin and stdout.

The agent opens with `start`. The trainer answers `ready` (program, weights and data are checked) and waits for a
`budget`, because only now is its own footprint known. More of them may come at any time, and one `stop`. The trainer
says `progress`, `checkpoint` and `paused` as they happen, and ends with exactly one of `complete`, `rejected` (this
device cannot do it, never retry) or `failed` (training itself went wrong). `error` is a crash explaining itself; the
exit code follows. A trainer that just exits has crashed. Lines longer than `LINE_LIMIT_BYTES` are never parsed. Nothing
here imports numpy: the idle agent imports this module.
"""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from hedgerow_agent.trainer.rung import DEFAULT_HYSTERESIS_BATCHES
from hedgerow_plans.protocol.messages import (
    BackendName,
    CheckpointReport,
    Count,
    Decimal,
    Digest,
    Identifier,
    Message,
    Progress,
    RateSchedule,
    Text,
)

LINE_LIMIT_BYTES = 1 << 20


class Start(Message):
    """Everything one training run needs; paths are this device's own."""

    kind: Literal["start"] = "start"
    job_uid: Identifier
    generation: Count
    program_file: str
    program_digest: Digest
    weights_file: str  # empty: none, first values come from the seed
    weights_sha256: Digest
    dataset_file: str
    folder: str  # of this job and generation: checkpoints and the resume file
    epochs: Annotated[int, Field(ge=1)]
    seed: Count
    learning_rate: Decimal
    schedule: RateSchedule | None = None
    backend: BackendName | None = None  # what the job asks for; the device's environment counts more
    augment: tuple[Text, ...] = ()  # words such as "shift:2"
    checkpoint_every_steps: Annotated[int, Field(ge=1)]
    from_checkpoint: Identifier | None = None  # used only where the resume file does not serve
    hysteresis_batches: Annotated[int, Field(ge=1)] = DEFAULT_HYSTERESIS_BATCHES
    measured_steps: Annotated[int, Field(ge=0)] = 2  # on each rung
    progress_seconds: Annotated[float, Field(ge=0)] = 0.5
    rest_between_steps_seconds: Annotated[float, Field(ge=0)] = 0.0
    powercap_folder: str = "/sys/class/powercap"  # where measured energy is, on machines that have it


class Budget(Message):
    """The budget in force from the next batch end on."""

    kind: Literal["budget"] = "budget"
    budget_bytes: Count | None  # None: only the program's rungs limit


class Stop(Message):
    """End without a word; what was not checkpointed is done again, to the same bits."""

    kind: Literal["stop"] = "stop"


class DataRead(Message):
    """What reading the dataset takes besides the arena."""

    samples: Count = 0
    skipped: Count = 0  # lines of a stream that nothing can be learnt from
    held_bytes: Count = 0  # in memory for the whole run: of a stream, its window and its batch
    at_once_bytes: Count = 0  # the largest piece while it was opened
    copied_bytes: Count = 0  # to storage, because it could not be mapped as it was


class Ready(Message):
    """Everything is checked; the arena is built when the budget comes."""

    kind: Literal["ready"] = "ready"
    footprint_bytes: Count  # resident set of the process before its arena
    data: DataRead = DataRead()
    backend: Text = ""  # what computes, for people
    progress: Progress


class Progressed(Message):
    """Where training is now; sent every so often and at every change of rung."""

    kind: Literal["progress"] = "progress"
    progress: Progress


class Checkpointed(Message):
    """A delta is durably in the folder."""

    kind: Literal["checkpoint"] = "checkpoint"
    checkpoint: CheckpointReport
    progress: Progress


class Paused(Message):
    """Not even the smallest rung fits; the trainer waits for a larger budget."""

    kind: Literal["paused"] = "paused"
    needed_bytes: Count
    budget_bytes: Count
    progress: Progress


class Stalled(Message):
    """A checkpoint cannot be written; the trainer tries again until it can, because going on would gain nothing."""

    kind: Literal["stalled"] = "stalled"
    message: Text
    progress: Progress


class Complete(Message):
    """The last step is done, its checkpoint is written, the test split was evaluated."""

    kind: Literal["complete"] = "complete"
    progress: Progress


class Rejected(Message):
    """This device cannot do this job; trying again would not help."""

    kind: Literal["rejected"] = "rejected"
    reason: Identifier
    message: Text


class Failed(Message):
    """Training went wrong in a way that trying again repeats, such as a loss that is no number."""

    kind: Literal["failed"] = "failed"
    reason: Identifier
    message: Text


class Error(Message):
    """The trainer is about to crash and knows why."""

    kind: Literal["error"] = "error"
    message: Text


Told = Start | Budget | Stop
Said = Ready | Progressed | Checkpointed | Paused | Stalled | Complete | Rejected | Failed | Error
TO_TRAINER: TypeAdapter[Told] = TypeAdapter(Annotated[Told, Field(discriminator="kind")])
FROM_TRAINER: TypeAdapter[Said] = TypeAdapter(Annotated[Said, Field(discriminator="kind")])


def as_line(message: Message) -> bytes:
    """Return one message as one line."""
    return message.model_dump_json().encode() + b"\n"


def shortened(text: str, limit: int = 1024) -> str:
    """Return a text that fits the bound of a message, with its end marked when something is missing."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
