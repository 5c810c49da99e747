"""DeviceClass: what devices of one kind have and cost. Cluster-scoped; plans are made per class."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from hedgerow_plans.resources.common import Count, Part, Resource, Rule, StatusPart, label_name_rule
from hedgerow_plans.resources.conditions import Conditions
from hedgerow_plans.resources.quantities import Quantity, parse_quantity

Rate = Annotated[int, Field(ge=1, le=10**18)]


class FrozenWeights(StrEnum):
    """Where parameters live that are not trained."""

    RESIDENT = "Resident"  # in the arena; they count against the budget
    MAPPED = "Mapped"  # in flash or a memory-mapped file; they do not


def _at_most(smaller: str, larger: str) -> str:
    compared = f"quantity(string(self.{smaller})).compareTo(quantity(string(self.{larger}))) <= 0"
    readable = f"!isQuantity(string(self.{smaller})) || !isQuantity(string(self.{larger}))"
    return f"!has(self.{smaller}) || {readable} || {compared}"


def _is_at_most(smaller: str | None, larger: str) -> bool:
    return smaller is None or parse_quantity(smaller) <= parse_quantity(larger)


class ClassMemory(Part):
    """How many bytes training may use: activations, gradients, optimiser state, parameters and scratch together."""

    rules = (
        Rule(
            "!isQuantity(string(self.budget)) || quantity(string(self.budget)).isGreaterThan(quantity('0'))",
            "budget must be more than 0 bytes",
            lambda part: parse_quantity(part.budget) > 0,
            "budget",
        ),
        Rule(
            _at_most("floor", "budget"),
            "floor must not be above budget: it is the smallest memory for which a plan is wanted",
            lambda part: _is_at_most(part.floor, part.budget),
            "floor",
        ),
        Rule(
            _at_most("allowance", "budget"),
            "allowance must not be above budget: plans are made for budget, and allowance only takes away from it",
            lambda part: _is_at_most(part.allowance, part.budget),
            "allowance",
        ),
    )

    budget: Quantity = Field(description="What plans are made for, such as 256Mi. The hard limit of the class.")
    floor: Quantity | None = Field(
        default=None, description="The smallest memory for which a plan is wanted; as small as possible if absent."
    )
    allowance: Quantity | None = Field(
        default=None,
        description="What may be used right now. Changing it moves devices up and down their plans at the next batch, "
        "without planning again; the whole budget if absent.",
    )
    frozen_weights: FrozenWeights = Field(
        default=FrozenWeights.RESIDENT,
        description="Where parameters live that are not trained: Resident (in the budget) or Mapped (flash or a "
        "memory-mapped file, outside the budget).",
    )


class Compute(Part):
    """How fast the device computes and what that costs; measured by `hedgerow-agent bench core`."""

    flops_per_second: Rate = Field(description="Sustained floating-point operations per second.")
    picojoules_per_flop: Annotated[int, Field(ge=0, le=10**12)] = Field(
        description="Energy of one operation; energy is modelled from it where the device cannot measure."
    )


class Storage(Part):
    """How fast tensors are paged out and in; without rates plans never page."""

    page_out_bytes_per_second: Rate | None = Field(default=None, description="Sustained writing to storage.")
    page_in_bytes_per_second: Rate | None = Field(default=None, description="Sustained reading from storage.")
    picojoules_per_byte_out: Annotated[int, Field(ge=0, le=10**12)] | None = Field(
        default=None, description="Energy of writing one byte."
    )
    picojoules_per_byte_in: Annotated[int, Field(ge=0, le=10**12)] | None = Field(
        default=None, description="Energy of reading one byte."
    )


class DeviceClassSpec(Part):
    """What devices of the class have and cost."""

    description: Annotated[str, StringConstraints(max_length=1024)] = Field(
        default="", description="For people: which board, where the numbers come from."
    )
    memory: ClassMemory = Field(description="How many bytes training may use.")
    compute: Compute = Field(description="How fast the device computes and what that costs.")
    storage: Storage | None = Field(default=None, description="How fast tensors are paged out and in.")

    @property
    def budget_bytes(self) -> int:
        """What plans are made for."""
        return parse_quantity(self.memory.budget)

    @property
    def floor_bytes(self) -> int | None:
        """The smallest memory for which a plan is wanted."""
        return None if self.memory.floor is None else parse_quantity(self.memory.floor)

    @property
    def allowance_bytes(self) -> int:
        """What may be used right now: the whole budget unless an allowance takes from it."""
        return self.budget_bytes if self.memory.allowance is None else parse_quantity(self.memory.allowance)


class DeviceClassStatus(StatusPart):
    """What the operator has to say about the class."""

    observed_generation: Count = Field(default=0, description="The generation of the spec that this status is about.")
    conditions: Conditions = ()


class DeviceClass(Resource):
    """A kind of device: its memory budget, speed and energy."""

    rules = (label_name_rule("DeviceClass", "it is the value of a label"),)

    spec: DeviceClassSpec
    status: DeviceClassStatus = DeviceClassStatus()
