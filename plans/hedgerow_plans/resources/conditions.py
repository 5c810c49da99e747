"""Conditions in the form that Kubernetes tools know, and the one pure function that changes a list of them."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from hedgerow_plans.resources.common import Count, StatusPart, Timestamp


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(StatusPart):
    """One observation about an object, with a reason for machines and a message for people."""

    type: Annotated[str, StringConstraints(min_length=1, max_length=316)] = Field(description="What is observed.")
    status: ConditionStatus = Field(description="Whether it holds: True, False or Unknown.")
    reason: Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[A-Za-z]([A-Za-z0-9_]*)?$")] = (
        Field(description="Why, in one CamelCase word; the words are documented constants.")
    )
    message: Annotated[str, StringConstraints(max_length=4096)] = Field(
        default="", description="Why, in a sentence with the numbers."
    )
    last_transition_time: Timestamp = Field(description="When status last changed.")
    observed_generation: Count = Field(default=0, description="The generation of the object that was looked at.")


Conditions = Annotated[
    tuple[Condition, ...],
    Field(
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        description="What is observed about the object; one entry a type.",
    ),
]


def find_condition(conditions: Sequence[Condition], kind: str) -> Condition | None:
    """Return the condition of a type, if there is one."""
    return next((condition for condition in conditions if condition.type == kind), None)


def with_condition(conditions: Sequence[Condition], new: Condition) -> tuple[Condition, ...]:
    """Return the list with a condition set; its transition time moves only when its status does."""
    old = find_condition(conditions, new.type)
    if old is None:
        return (*conditions, new)
    if old.status == new.status:
        new = new.model_copy(update={"last_transition_time": old.last_transition_time})
    return tuple(new if condition.type == new.type else condition for condition in conditions)
