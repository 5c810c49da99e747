"""What a TrainingJob says about how far a step goes: the learning rate over time, and the clipping of gradients."""

from typing import Annotated

from pydantic import Field

from hedgerow_plans.resources.common import DecimalText, Part, one_of
from hedgerow_plans.resources.job_optimizer import decimal_rule


class ConstantSchedule(Part):
    """The same rate at every step."""


class StepSchedule(Part):
    """The rate times a factor after every so many epochs."""

    rules = (decimal_rule("factor", "{} > 0.0 && {} <= 1.0", "above 0 and at most 1", "0.5", lambda d: 0 < d <= 1),)

    every_epochs: Annotated[int, Field(ge=1, le=100_000)] = Field(description="Epochs between two falls of the rate.")
    factor: DecimalText = Field(description='What the rate is multiplied with, a decimal in quotes such as "0.5".')


class CosineSchedule(Part):
    """A rise to the rate in equal steps, then half a cosine down to a share of it at the last step."""

    rules = (decimal_rule("finalShare", "{} <= 1.0", "between 0 and 1", "0.01", lambda d: d <= 1),)

    warm_up_steps: Annotated[int, Field(ge=0, le=10**9)] = Field(
        default=0, description="Steps until the rate is reached; none if absent."
    )
    final_share: DecimalText = Field(
        default="0", description='What is left of the rate at the last step, a decimal in quotes such as "0.01".'
    )


class Schedule(Part):
    """How the learning rate changes; exactly one of the fields is set."""

    rules = (one_of("schedule", "constant", "step", "cosine"),)

    constant: ConstantSchedule | None = Field(default=None, description="The same rate always. Write `constant: {}`.")
    step: StepSchedule | None = Field(default=None, description="Falls by a factor after every so many epochs.")
    cosine: CosineSchedule | None = Field(default=None, description="Rises in equal steps, then falls as a cosine.")


class Clipping(Part):
    """How gradients are kept from growing without bound; exactly one of the fields is set."""

    rules = (
        one_of("clipping", "value", "globalNorm"),
        decimal_rule("value", "{} > 0.0", "above 0", "1.0", lambda d: d > 0, optional=True),
        decimal_rule("globalNorm", "{} > 0.0", "above 0", "1.0", lambda d: d > 0, optional=True),
    )

    value: DecimalText | None = Field(
        default=None, description='The largest magnitude of each number of a gradient, in quotes such as "1.0".'
    )
    global_norm: DecimalText | None = Field(
        default=None,
        description='The largest norm of all gradients together, in quotes such as "1.0". They are all kept until it '
        "is known, so plans without micro-batches need more memory.",
    )
