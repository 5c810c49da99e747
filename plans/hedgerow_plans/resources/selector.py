"""Label selectors with the meaning they have everywhere in Kubernetes."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from hedgerow_plans.resources.common import Part, Rule

LabelKey = Annotated[
    str,
    StringConstraints(
        min_length=1,
        max_length=317,
        pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
    ),
]
LabelValue = Annotated[str, StringConstraints(max_length=63, pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$")]


class SelectorOperator(StrEnum):
    """How a label is compared."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class LabelRequirement(Part):
    """One comparison of one label."""

    rules = (
        Rule(
            "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
            "values must be given for In and NotIn, and must be absent for Exists and DoesNotExist",
            lambda part: (part.operator in {SelectorOperator.IN, SelectorOperator.NOT_IN}) == bool(part.values),
            "values",
        ),
    )

    key: LabelKey = Field(description="The label.")
    operator: SelectorOperator = Field(description="In, NotIn, Exists or DoesNotExist.")
    values: Annotated[tuple[LabelValue, ...], Field(max_length=64)] = Field(
        default=(), description="What In and NotIn compare with."
    )

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels satisfy this requirement; NotIn is satisfied by absence."""
        match self.operator:
            case SelectorOperator.IN:
                return labels.get(self.key) in self.values
            case SelectorOperator.NOT_IN:
                return labels.get(self.key) not in self.values
            case SelectorOperator.EXISTS:
                return self.key in labels
            case SelectorOperator.DOES_NOT_EXIST:
                return self.key not in labels


class LabelSelector(Part):
    """Everything that it names must match; an empty selector matches everything."""

    match_labels: Annotated[dict[str, LabelValue], Field(max_length=64)] = Field(
        default={}, description="Labels with exactly these values."
    )
    match_expressions: Annotated[tuple[LabelRequirement, ...], Field(max_length=32)] = Field(
        default=(), description="Comparisons of labels."
    )

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether an object with these labels is selected."""
        exact = all(labels.get(key) == value for key, value in self.match_labels.items())
        return exact and all(requirement.matches(labels) for requirement in self.match_expressions)
