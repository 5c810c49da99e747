"""ExecutionPlan: the summary of one program (a ladder of plans), made by the operator and never edited.

The bytes of the program are in ConfigMaps that the ExecutionPlan names. It is owned by every job that uses it.
"""

from typing import Annotated

from pydantic import Field, StringConstraints

from hedgerow_plans.resources.common import Count, Digest, ObjectName, Part, Resource, Rule, Shown, StatusPart
from hedgerow_plans.resources.conditions import Conditions

_Size = Annotated[int, Field(ge=1, le=2**53)]
_Percent = Annotated[str, StringConstraints(max_length=16, pattern=r"^(-|[0-9]{1,6}(\.[0-9]{1,6})?)$")]


class Rung(Part):
    """One plan of the ladder, and what it promises."""

    micro_batch: Annotated[int, Field(ge=1, le=65_536)] = Field(description="Samples computed at once.")
    strategy: Annotated[str, StringConstraints(min_length=1, max_length=63)] = Field(
        description="Which planner made it: keep-all recomputes nothing, optimal searched for the least energy, ..."
    )
    peak_bytes: _Size = Field(description="Highest byte of the arena that is ever used.")
    step_microjoules: Count = Field(description="Modelled energy of one step.")
    step_microseconds: Count = Field(description="Modelled time of one step.")
    flops: Count = Field(description="Floating-point operations of one step.")
    least_microjoules: Count = Field(
        default=0,
        description="No plan of this graph and micro-batch within the same memory takes less energy; proven.",
    )
    gap_percent: _Percent = Field(
        default="-", description="How far the energy may be from the least, in percent; - if none is known."
    )
    working_set_bytes: Count = Field(
        default=0, description="The largest single step: below it nothing of this micro-batch runs; proven."
    )
    max_live_bytes: Count = Field(default=0, description="No placement of its tensors has a lower peak; proven.")


class PlanColumns(Part):
    """What `kubectl get` shows, already written out."""

    floor: Shown = Field(default="", description="Such as 1.1Mi.")
    peak: Shown = Field(default="", description="Such as 6.3Mi.")
    rungs: Shown = Field(default="", description="How many plans there are.")
    gap: Shown = Field(default="", description="Such as 0.02%, or -.")


class ExecutionPlanSpec(Part):
    """What was computed, for what, and where its bytes are."""

    rules = (
        Rule(
            "self == oldSelf",
            "an ExecutionPlan is never edited: delete it, and the operator computes it again",
        ),
        Rule(
            "self.floorBytes <= self.peakBytes",
            "floorBytes must not be above peakBytes",
            lambda part: part.floor_bytes <= part.peak_bytes,
            "floorBytes",
        ),
    )

    key: Digest = Field(description="Digest of everything that went into planning; the same key gives the same bytes.")
    digest: Digest = Field(description="sha256 of the encoded program; devices ask for it by this name.")
    model: Shown = Field(description="Which model.")
    method: Shown = Field(description="What is trained.")
    device_class: ObjectName = Field(alias="class", description="The DeviceClass that it was planned for.")
    kernel_table: Count = Field(default=1, description="Version of the operators that it was planned with.")
    batch_size: Annotated[int, Field(ge=1, le=65_536)] = Field(description="Samples per update.")
    rungs: Annotated[tuple[Rung, ...], Field(min_length=1, max_length=64)] = Field(
        description="The plans, the one with the most memory first."
    )
    floor_bytes: _Size = Field(description="Peak of the smallest plan.")
    peak_bytes: _Size = Field(description="Peak of the largest plan.")
    gap_percent: _Percent = Field(
        default="-",
        description="How far the worst rung's energy may be from the least that is proven, in percent; - if unknown.",
    )
    parts: Annotated[tuple[ObjectName, ...], Field(min_length=1, max_length=1024)] = Field(
        description="ConfigMaps with the compressed program, in order."
    )
    encoded_bytes: _Size = Field(description="Size of the program.")
    compressed_bytes: _Size = Field(description="Size of all parts together.")
    columns: PlanColumns = Field(default=PlanColumns(), description="What `kubectl get` shows, already written out.")


class ExecutionPlanStatus(StatusPart):
    """What the operator has to say about the plan."""

    observed_generation: Count = Field(default=0, description="The generation of the spec that this status is about.")
    conditions: Conditions = ()


class ExecutionPlan(Resource):
    """A program for one model, method and class: the ladder of plans that devices of the class follow."""

    spec: ExecutionPlanSpec
    status: ExecutionPlanStatus = ExecutionPlanStatus()
