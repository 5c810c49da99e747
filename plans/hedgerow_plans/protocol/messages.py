"""The documents that cross the network, as pydantic models: bounded, strict, and readable with `mosquitto_sub`.

`Desired` is what the operator wants of one device; it travels inside a signed envelope. `State` (birth and last will),
`Reported` (the device's twin, on change) and `Telemetry` (periodic, may be lost) come from the device. Every field has
a bound, so that a hostile payload is refused before anything is allocated for it.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Name = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")]
Text = Annotated[str, StringConstraints(max_length=1024)]
Identifier = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]  # sha256, hexadecimal
Count = Annotated[int, Field(ge=0, le=2**53)]
Decimal = Annotated[str, StringConstraints(max_length=32, pattern=r"^[0-9]+(\.[0-9]+)?([eE]-?[0-9]+)?$")]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]  # an accuracy
Loss = Annotated[float, Field(ge=-1e300, le=1e300, allow_inf_nan=False)]  # the sum over any fleet stays finite
_LabelName = Annotated[str, StringConstraints(max_length=317)]  # a prefix of 253, a slash, and 63
LabelMap = Annotated[dict[_LabelName, Annotated[str, StringConstraints(max_length=63)]], Field(max_length=64)]


BackendName = Literal["numpy", "native"]
"""What computes on a device: numpy, or the compiled library."""

MOST_CHECKPOINTS = 100
"""Kept on a device at most, so that a twin that names them all stays well below a broker's message limit."""


class Message(BaseModel):
    """A document: immutable, and intolerant of fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class RollbackTarget(StrEnum):
    """What a device can go back to, besides a checkpoint id."""

    LAST = "last"
    PREVIOUS = "previous"
    BASE = "base"


class RollbackResult(StrEnum):
    """What became of a rollback request."""

    NOT_REQUESTED = "NotRequested"
    PENDING = "Pending"
    COMPLETE = "Complete"
    NO_STATE_CHANGE = "NoStateChange"
    UNABLE = "Unable"


class Phase(StrEnum):
    """What a device is doing with its assignment."""

    IDLE = "Idle"
    PREPARING = "Preparing"  # fetching and checking program and weights
    TRAINING = "Training"
    PAUSED = "Paused"  # nothing fits the budget; resumes by itself
    COMPLETED = "Completed"
    FAILED = "Failed"  # crashed too often on this generation
    REJECTED = "Rejected"  # cannot be done on this device; never retried
    HELD = "Held"  # rolled back; trains again when released, or for a new generation


class EnergySource(StrEnum):
    """Where an energy figure comes from; the two are never mixed up."""

    MEASURED = "measured"
    MODELLED = "modelled"


class ProgramReference(Message):
    """Where the program of a job is, and how to know that it is the right one."""

    digest: Digest
    parts: Annotated[int, Field(ge=1, le=4096)]
    compressed_bytes: Annotated[int, Field(ge=1, le=2**28)]
    encoded_bytes: Annotated[int, Field(ge=1, le=2**30)]


class WeightsReference(Message):
    """The base model: a file that the device maps to its own folder, known by its sha256."""

    uri: Annotated[str, StringConstraints(min_length=1, max_length=1024)]
    sha256: Digest


MOST_AUGMENTATIONS = 8
_AugmentationWord = Annotated[
    str, StringConstraints(max_length=48, pattern=r"^[a-z]+(:[0-9]+(\.[0-9]+)?([eE]-?[0-9]+)?)?$")
]
Augmentations = Annotated[tuple[_AugmentationWord, ...], Field(max_length=MOST_AUGMENTATIONS)]
"""What is done to samples in training, in order: words such as shift:2, flip and noise:0.05."""


class RateSchedule(Message):
    """How the learning rate changes over a run; which of the numbers count depends on the kind."""

    kind: Literal["constant", "step", "cosine"]
    every_epochs: Annotated[int, Field(ge=1, le=100_000)] = 1  # of step
    factor: Decimal = "1"  # of step
    warm_up_steps: Annotated[int, Field(ge=0, le=10**9)] = 0  # of cosine
    final_share: Decimal = "0"  # of cosine


class Assignment(Message):
    """One job as one device sees it. Idempotent by (job_uid, generation)."""

    job_uid: Identifier
    job_name: Name
    generation: Annotated[int, Field(ge=1)]
    program: ProgramReference
    weights: WeightsReference
    dataset: Identifier
    epochs: Annotated[int, Field(ge=1, le=100_000)]
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)]
    learning_rate: Decimal
    schedule: RateSchedule | None = None  # None: the rate stays the same
    backend: BackendName | None = None  # None: what the device has
    augmentation: Augmentations = ()
    checkpoint_every_steps: Annotated[int, Field(ge=1, le=10**9)]
    checkpoints_kept: Annotated[int, Field(ge=1, le=MOST_CHECKPOINTS)]


class RollbackRequest(Message):
    """Go back; a new request_id is a new request. Once `released` the device may train again from there."""

    to: Identifier  # last, previous, base, or a checkpoint id
    request_id: Identifier
    released: bool = False


class Desired(Message):
    """What the operator wants of one device, all of it."""

    kind: Literal["desired"] = "desired"
    assignment: Assignment | None = None  # None: stop, and do nothing
    allowance_bytes: Count | None = None  # of the class, for right now; None: only the program's rungs limit
    override_bytes: Count | None = None  # for this device alone
    rollback: RollbackRequest | None = None


class State(Message):
    """Whether a device is there. The birth says what it is; the will of the same epoch says that it was lost."""

    kind: Literal["state"] = "state"
    state: Literal["online", "sleeping", "offline", "lost"]
    epoch: Count  # of the connection; a stored counter, not a clock
    device_class: Name | None = None
    labels: LabelMap = {}
    agent_version: Identifier | None = None
    program_schema: Count | None = None
    kernel_table: Count | None = None
    backend: Identifier | None = None


class CheckpointReport(Message):
    """A delta that is durably on the device."""

    id: Identifier
    step: Count
    sha256: Digest
    size_bytes: Count
    accuracy: Share | None = None  # on the validation split


class RollbackReport(Message):
    """What became of the newest rollback request."""

    request_id: Identifier
    result: RollbackResult
    running: Identifier  # a checkpoint id, or "base": what the device really runs now
    message: Text = ""


class Refusal(Message):
    """A document that was not obeyed."""

    count: Count
    reason: Identifier  # Unsigned, BadSignature, UnknownKey, Replayed, Expired, WrongDevice, Malformed
    message: Text


class Memory(Message):
    """The arena: what the plan promises, what was seen, and what is allowed."""

    planned_bytes: Count
    measured_bytes: Count | None = None  # None: not a full measured step yet
    budget_bytes: Count


class RungPeak(Message):
    """What one rung promised, and what was measured when it was used."""

    rung: Count
    planned_bytes: Count
    measured_bytes: Count


class Energy(Message):
    """Energy spent on this job so far."""

    microjoules: Count
    source: EnergySource


class Quality(Message):
    """How good a model is on samples that it was not trained on."""

    samples: Count
    loss: Loss | None = None  # None: it is no number
    accuracy: Share | None = None  # None: the model has no classes
    f1_macro: Share | None = None  # mean over the classes that occur


class Progress(Message):
    """How far training is, on which rung, and how well."""

    step: Count
    total_steps: Count
    loss: Loss | None = None
    rung: Count  # 0 is the one with the most memory
    rungs: Count
    switches_down: Count
    switches_up: Count
    rungs_used: Annotated[tuple[Count, ...], Field(max_length=64)] = ()
    peaks: Annotated[tuple[RungPeak, ...], Field(max_length=64)] = ()  # of every rung that was measured
    accuracy_before: Share | None = None  # test split, base model
    accuracy_now: Share | None = None  # validation split, newest checkpoint
    accuracy_after: Share | None = None  # test split, when training is complete
    validation: Quality | None = None  # of the newest checkpoint
    test: Quality | None = None  # when training is complete
    step_microseconds: Count | None = None  # median of the last steps that were not measured
    memory: Memory
    energy: Energy


class Reported(Message):
    """The device's twin: published on change, retained. It says what the device really runs, after the fact."""

    kind: Literal["reported"] = "reported"
    epoch: Count
    observed_sequence: Count  # of the newest accepted envelope
    job_uid: Identifier | None = None
    generation: Count | None = None
    phase: Phase
    reason: Identifier
    message: Text = ""
    running: Identifier = "base"  # active adapter: a checkpoint id, or "base"
    progress: Progress | None = None
    checkpoints: Annotated[tuple[CheckpointReport, ...], Field(max_length=1000)] = ()  # oldest first
    rollback: RollbackReport | None = None
    refusal: Refusal | None = None
    crashes: Count = 0
    footprint_bytes: Count | None = None  # of the trainer before its arena


class Telemetry(Message):
    """A sample of the moment; may be lost, is never retained."""

    kind: Literal["telemetry"] = "telemetry"
    epoch: Count
    job_uid: Identifier | None = None
    phase: Phase
    progress: Progress | None = None
    checkpoints_written: Count = 0
    rollbacks: Count = 0
    rss_bytes: Count | None = None
