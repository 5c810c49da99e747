"""Device: one device of the fleet. Created by the operator when the device first reports; approved by people."""

from typing import Annotated

from pydantic import Field, StringConstraints

from hedgerow_plans.protocol.messages import EnergySource, Phase, RollbackResult
from hedgerow_plans.resources.common import (
    Count,
    Digest,
    Message,
    ObjectName,
    Part,
    Resource,
    Shown,
    StatusPart,
    Timestamp,
    Word,
    label_name_rule,
)
from hedgerow_plans.resources.conditions import Conditions
from hedgerow_plans.resources.quantities import Quantity, parse_quantity
from hedgerow_plans.resources.rollback import ReleaseRequest, RollbackRequest


class DeviceSpec(Part):
    """What people decide about a device."""

    device_class: ObjectName = Field(alias="class", description="The DeviceClass that the device belongs to.")
    approved: bool = Field(default=False, description="Only approved devices get work.")
    memory_override: Quantity | None = Field(
        default=None, description="What training may use on this device right now; the least of all limits counts."
    )
    rollback: RollbackRequest | None = Field(default=None, description="Where this device should go back to.")
    release: ReleaseRequest | None = Field(default=None, description="Lets a device that was rolled back train again.")

    @property
    def override_bytes(self) -> int | None:
        """What training may use on this device alone."""
        return None if self.memory_override is None else parse_quantity(self.memory_override)


class DeviceMemory(StatusPart):
    """The arena of the device, in bytes."""

    planned: Count = Field(default=0, description="Peak that the plan in use promises, in bytes.")
    measured: Count | None = Field(default=None, description="Peak that was measured, in bytes.")
    budget: Count = Field(default=0, description="What may be used right now, in bytes.")


class DeviceAccuracy(StatusPart):
    """How well the device does on its own held-out samples, as decimals."""

    before: Shown | None = Field(default=None, description="Of the base model, on the test split.")
    now: Shown | None = Field(default=None, description="Of the newest checkpoint, on the validation split.")
    after: Shown | None = Field(default=None, description="Of the trained model, on the test split.")


class DeviceEnergy(StatusPart):
    """What training has cost."""

    microjoules: Count = Field(default=0, description="Energy spent on the job so far.")
    source: EnergySource = Field(default=EnergySource.MODELLED, description="measured or modelled.")


class DeviceCheckpoint(StatusPart):
    """A delta that is durably on the device."""

    id: Word = Field(description="Its name, to roll back to.")
    step: Count = Field(default=0, description="The step after which it was written.")
    sha256: Digest = Field(description="Of its file.")
    size_bytes: Count = Field(default=0, description="Of its file.")
    accuracy: Shown | None = Field(default=None, description="On the validation split.")


class DeviceRollback(StatusPart):
    """What became of the newest rollback request."""

    request_id: Word = Field(description="Which request.")
    result: RollbackResult = Field(
        description="NotRequested, Pending, Complete, NoStateChange (it was there already) or Unable (see message)."
    )
    running: Shown = Field(default="", description="What the device runs now: a checkpoint id, or base.")
    message: Message = Field(default="", description="Details for people.")


class DeviceRefusal(StatusPart):
    """Messages that the device did not obey."""

    count: Count = Field(default=0, description="How many since it was set up.")
    reason: Shown = Field(
        default="",
        description="Why the last one was refused: Unsigned, BadSignature, UnknownKey, Replayed, Expired, WrongDevice "
        "or Malformed.",
    )
    message: Message = Field(default="", description="The device's own words.")


class DeviceAgent(StatusPart):
    """What runs on the device."""

    version: Shown = Field(default="", description="Of the agent.")
    program_schema: Count = Field(default=0, description="Version of programs that it reads.")
    kernel_table: Count = Field(default=0, description="Version of the operators that it computes.")
    backend: Shown = Field(default="", description="What computes: numpy, ...")


class DeviceColumns(StatusPart):
    """What `kubectl get` shows, already written out."""

    rung: Shown = Field(default="", description="Plan in use, counted from the one with the most memory: 2/4.")
    memory: Shown = Field(
        default="", description="Measured peak (planned, if not measured yet) and budget: 3.1Mi/3.2Mi."
    )
    accuracy: Shown = Field(default="", description="Before and now: 0.71→0.94.")
    energy: Shown = Field(default="", description="Spent on the job, and its source: 1.2J modelled.")
    rollback: Shown = Field(default="", description="Result of the newest request: Complete.")
    refused: Annotated[str, StringConstraints(max_length=1200)] = Field(
        default="", description="Count, reason and message of the last refusal."
    )


class DeviceStatus(StatusPart):
    """What the device says about itself. Written by the operator only, when it changes."""

    observed_generation: Count = Field(default=0, description="The generation of the spec that was sent last.")
    connection: Shown = Field(default="", description="online, sleeping, offline or lost.")
    state: Shown = Field(default="", description="One word: the phase of an online device, else its connection.")
    phase: Phase | None = Field(default=None, description="What the device does with its work.")
    reason: Shown = Field(default="", description="Why, in one word.")
    message: Message = Field(default="", description="Why, in a sentence.")
    conditions: Conditions = ()
    job: Shown = Field(default="", description="The TrainingJob that it works for.")
    generation: Count = Field(default=0, description="Training generation of that job.")
    rung: Count | None = Field(default=None, description="Plan in use; 0 is the one with the most memory.")
    rungs: Count | None = Field(default=None, description="How many plans there are.")
    memory: DeviceMemory | None = Field(default=None, description="The arena, in bytes.")
    accuracy: DeviceAccuracy | None = Field(default=None, description="On the device's own held-out samples.")
    energy: DeviceEnergy | None = Field(default=None, description="What training has cost.")
    progress_percent: Annotated[int, Field(ge=0, le=100)] | None = Field(
        default=None, description="Steps done of all steps."
    )
    checkpoint: Shown = Field(default="", description="The newest checkpoint.")
    checkpoints: Annotated[tuple[DeviceCheckpoint, ...], Field(max_length=1000)] = Field(
        default=(), description="What can be rolled back to, oldest first."
    )
    running: Shown = Field(default="", description="What the device runs now: a checkpoint id, or base.")
    rollback: DeviceRollback | None = Field(default=None, description="What became of the newest rollback request.")
    refusal: DeviceRefusal | None = Field(default=None, description="Messages that the device did not obey.")
    crashes: Count = Field(default=0, description="Crashes of the trainer on this generation.")
    agent: DeviceAgent | None = Field(default=None, description="What runs on the device.")
    last_seen: Timestamp | None = Field(default=None, description="When its connection or twin last changed.")
    observed_sequence: Count = Field(default=0, description="Of the newest message that the device accepted.")
    columns: DeviceColumns = Field(
        default=DeviceColumns(), description="What `kubectl get` shows, already written out."
    )


class Device(Resource):
    """One device of the fleet; its name is the device's id, its namespace the fleet."""

    rules = (label_name_rule("Device", "it is part of the device's MQTT topics"),)

    spec: DeviceSpec
    status: DeviceStatus = DeviceStatus()
