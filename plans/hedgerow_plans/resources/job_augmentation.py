"""What a TrainingJob says about changing samples a little every time they are seen, so that a few teach more."""

from typing import Annotated

from pydantic import Field

from hedgerow_plans.resources.common import DecimalText, Part, one_of
from hedgerow_plans.resources.job_optimizer import decimal_rule


class Shift(Part):
    """Images moved by up to so many pixels in each direction; what comes in is empty."""

    pixels: Annotated[int, Field(ge=1, le=4096)] = Field(description="The most an image is moved along each axis.")


class Flip(Part):
    """Every other image mirrored from left to right."""


class Noise(Part):
    """Gaussian noise on every number of a sample."""

    rules = (
        decimal_rule(
            "deviation", "{} > 0.0 && {} <= 1000.0", "above 0 and at most 1000", "0.05", lambda d: 0 < d <= 1000
        ),
    )

    deviation: DecimalText = Field(description='Its standard deviation, a decimal in quotes such as "0.05".')


class Augmentation(Part):
    """One change of a sample; exactly one of the fields is set."""

    rules = (one_of("augmentation", "shift", "flip", "noise"),)

    shift: Shift | None = Field(default=None, description="Moves images. Write `shift: {pixels: 2}`.")
    flip: Flip | None = Field(default=None, description="Mirrors every other image. Write `flip: {}`.")
    noise: Noise | None = Field(default=None, description='Adds noise. Write `noise: {deviation: "0.05"}`.')
