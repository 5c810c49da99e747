"""TrainingJob: what to train, how, and on which devices; and how far it is.

Editing model, dataset, method, training or checkpoint of a job starts it again: devices see a new training generation.
Editing anything else (devices, completion, rollback, suspend) does not, although Kubernetes counts it as a generation
of the object; `training_generation` tells the two apart.
"""

import hashlib
import json
import re
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from hedgerow_plans.protocol.messages import MOST_AUGMENTATIONS, MOST_CHECKPOINTS
from hedgerow_plans.resources.common import (
    Count,
    Digest,
    ObjectName,
    Part,
    Resource,
    Rule,
    Shown,
    StatusPart,
    Timestamp,
    Word,
    label_name_rule,
)
from hedgerow_plans.resources.conditions import Conditions
from hedgerow_plans.resources.job_augmentation import Augmentation
from hedgerow_plans.resources.job_method import Method
from hedgerow_plans.resources.job_optimizer import Optimizer
from hedgerow_plans.resources.job_pace import Clipping, Schedule
from hedgerow_plans.resources.reasons import JobState
from hedgerow_plans.resources.rollback import RollbackRequest
from hedgerow_plans.resources.selector import LabelSelector

_WEIGHTS_URI = "^file:[A-Za-z0-9][A-Za-z0-9._-]{0,199}[.]safetensors$"
_TRAINING_FIELDS = {"model", "dataset", "method", "training", "checkpoint"}


class Weights(Part):
    """The base model's parameters: a file that each device already has, known by its digest."""

    rules = (
        Rule(
            f"self.uri.matches('{_WEIGHTS_URI}')",
            "uri must be file:NAME.safetensors, where NAME has letters, digits, dots, dashes and underscores only: "
            "it is looked up in the agent's models folder",
            lambda part: re.fullmatch(_WEIGHTS_URI, part.uri, re.ASCII) is not None,
            "uri",
        ),
    )

    uri: Annotated[str, StringConstraints(max_length=256)] = Field(
        description="file:NAME.safetensors, looked up in the agent's models folder and nowhere else."
    )
    sha256: Digest = Field(description="The sha256 of that file, hexadecimal; a device with another file refuses.")


class Model(Part):
    """Which network is trained, and from which parameters it starts."""

    zoo: Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")] = (
        Field(description="The name of a built-in model; `hedgerow models` lists them.")
    )
    classes: Annotated[int, Field(ge=2, le=100_000)] | None = Field(
        default=None, description="How many classes it tells apart; the model's own number if absent."
    )
    input_shape: (
        Annotated[tuple[Annotated[int, Field(ge=1, le=65_536)], ...], Field(min_length=1, max_length=4)] | None
    ) = Field(
        default=None,
        description="Shape of one sample, such as [1, 28, 28] for a grey image; the model's own shape if absent.",
    )
    weights: Weights = Field(description="The parameters to start from.")


class Backend(StrEnum):
    """What computes on devices; the two agree but for rounding."""

    NUMPY = "Numpy"
    NATIVE = "Native"  # the compiled library


class Training(Part):
    """How long, in which batches, with which optimizer."""

    epochs: Annotated[int, Field(ge=1, le=100_000)] = Field(description="Passes over the device's training samples.")
    batch_size: Annotated[int, Field(ge=1, le=65_536)] = Field(
        description="Samples per update. A plan may cut a batch into micro-batches; the result stays that of the batch."
    )
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = Field(
        default=0, description="Fixes data split, order and initial values: the same seed trains the same bits."
    )
    optimizer: Optimizer = Field(description="How parameters are updated.")
    schedule: Schedule | None = Field(
        default=None, description="How the learning rate changes over the run; it stays the same if absent."
    )
    clipping: Clipping | None = Field(
        default=None, description="Keeps gradients from growing without bound; they are used as they are if absent."
    )
    augmentation: Annotated[tuple[Augmentation, ...], Field(max_length=MOST_AUGMENTATIONS)] = Field(
        default=(),
        description="How samples are changed in training, in order and differently every time they are seen; they are "
        "used as they are if there is nothing here, and always when a model is judged.",
    )
    backend: Backend | None = Field(
        default=None,
        description="What computes: Numpy, or Native (the compiled library; a device without it waits and says so). "
        "If absent each device takes the library where it is installed, else numpy. HEDGEROW_BACKEND on a device "
        "counts more than this.",
    )


class JobDevices(Part):
    """Who trains."""

    selector: LabelSelector = Field(
        description="Selects Devices of the same namespace by their labels; only approved ones get work. Both lists "
        "must match; an empty selector ({}) selects every device."
    )


class Checkpointing(Part):
    """When a device writes its delta, and how many it keeps."""

    every_steps: Annotated[int, Field(ge=1, le=10**9)] = Field(default=50, description="Steps between checkpoints.")
    keep: Annotated[int, Field(ge=1, le=MOST_CHECKPOINTS)] = Field(
        default=3, description="How many checkpoints a device keeps, the newest ones; these can be rolled back to."
    )


class Completion(Part):
    """When the job is done."""

    success_threshold_percent: Annotated[int, Field(ge=1, le=100)] = Field(
        default=100, description="The job succeeds when this share of its devices (without the held ones) completed."
    )
    deadline_seconds: Annotated[int, Field(ge=1, le=10 * 366 * 86_400)] | None = Field(
        default=None,
        description="Seconds after its start at which the job fails if it has not succeeded; none if absent.",
    )


class JobRollback(Part):
    """Rolling back every device of the job."""

    request: RollbackRequest | None = Field(default=None, description="The newest request; applies to every device.")


class TrainingJobSpec(Part):
    """What somebody wants trained."""

    model: Model = Field(description="Which network, and from which parameters it starts.")
    dataset: Word = Field(description="A name that each agent maps to its own files. The data never leaves the device.")
    method: Method = Field(description="What is trained: exactly one of the methods.")
    training: Training = Field(description="Epochs, batch size, seed and optimizer.")
    devices: JobDevices = Field(description="Who trains.")
    checkpoint: Checkpointing = Field(default=Checkpointing(), description="When a device writes its delta.")
    completion: Completion = Field(default=Completion(), description="When the job is done.")
    rollback: JobRollback | None = Field(default=None, description="Rolling back every device of the job.")
    suspend: bool = Field(default=False, description="true stops training on every device until it is false again.")


class DeviceCounts(StatusPart):
    """How many devices are where; an approved one is in exactly one of pending to heldOrRolledBack."""

    matched: Count = Field(default=0, description="Devices that the selector finds.")
    approved: Count = Field(default=0, description="Of these, approved ones. The rest gets no work.")
    pending: Count = Field(default=0, description="Approved, and not begun.")
    training: Count = Field(default=0, description="Preparing, training or paused.")
    completed: Count = Field(default=0, description="Trained to the end.")
    failed: Count = Field(default=0, description="Crashed too often.")
    rejected: Count = Field(default=0, description="Cannot be done on that device; never tried again.")
    held_or_rolled_back: Count = Field(default=0, description="Rolled back and held; neither done nor failed.")
    offline: Count = Field(default=0, description="Not connected right now; counted elsewhere as well.")


class JobAccuracy(StatusPart):
    """Mean accuracy over the devices that report one, as decimals."""

    before: Shown | None = Field(default=None, description="Of the base model on held-out samples, such as 0.71.")
    now: Shown | None = Field(default=None, description="Of the newest checkpoints, or at the end, such as 0.94.")


class JobPlan(StatusPart):
    """The program of one class of devices."""

    device_class: ObjectName = Field(alias="class", description="The DeviceClass.")
    execution_plan: ObjectName = Field(description="The ExecutionPlan.")
    digest: Digest = Field(description="sha256 of the program.")


class JobColumns(StatusPart):
    """What `kubectl get` shows, already written out."""

    progress: Shown = Field(default="", description="Such as 61%.")
    accuracy: Shown = Field(default="", description="Mean before and now, such as 0.71→0.94.")


class TrainingJobStatus(StatusPart):
    """How far the job is. Written by the operator only."""

    observed_generation: Count = Field(default=0, description="The generation of the spec that this status is about.")
    training_generation: Count = Field(
        default=0, description="The generation at which model, dataset, method, training or checkpoint last changed."
    )
    training_digest: Annotated[str, StringConstraints(max_length=64)] = Field(
        default="", description="sha256 of these fields, to see when they change."
    )
    state: JobState | None = Field(default=None, description="The whole status in one word.")
    conditions: Conditions = ()
    devices: DeviceCounts = Field(default=DeviceCounts(), description="How many devices are where.")
    progress_percent: Annotated[int, Field(ge=0, le=100)] = Field(
        default=0, description="Steps done of all steps of all devices."
    )
    accuracy: JobAccuracy = Field(default=JobAccuracy(), description="Mean accuracy before and now.")
    start_time: Timestamp | None = Field(default=None, description="When the first device was given work.")
    completion_time: Timestamp | None = Field(default=None, description="When the job succeeded or failed.")
    plans: Annotated[tuple[JobPlan, ...], Field(max_length=256)] = Field(
        default=(), description="The programs in use, one a class."
    )
    columns: JobColumns = Field(default=JobColumns(), description="What `kubectl get` shows, already written out.")


class TrainingJob(Resource):
    """Trains a model on a set of devices, on their own data, inside their budgets."""

    rules = (label_name_rule("TrainingJob", "it is the value of a label"),)

    spec: TrainingJobSpec
    status: TrainingJobStatus = TrainingJobStatus()


def training_digest(spec: TrainingJobSpec) -> str:
    """Return the sha256 of what, when it changes, makes devices train again."""
    text = json.dumps(spec.model_dump(mode="json", include=_TRAINING_FIELDS, exclude_none=True), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def training_generation(job: TrainingJob) -> int:
    """Return the generation that devices are told: it stands still when only devices, rollback or the like change."""
    unchanged = job.status.training_digest == training_digest(job.spec)
    return job.status.training_generation if unchanged else job.metadata.generation
