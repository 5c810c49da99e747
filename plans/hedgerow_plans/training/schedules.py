"""How the learning rate changes over a run: a share of the job's rate, found from the step number alone.

No program depends on it: the executor brings the rate of each step at run time. A run that goes on after a restart is
at the same step, so it has the same rate.
"""

import math
from dataclasses import dataclass

from hedgerow_plans.graph.errors import GraphError


@dataclass(frozen=True, slots=True)
class Length:
    """How long a run is."""

    epochs: int
    steps_per_epoch: int

    @property
    def steps(self) -> int:
        """Steps of the whole run."""
        return self.epochs * self.steps_per_epoch


@dataclass(frozen=True, slots=True)
class Constant:
    """The same rate at every step."""

    def share(self, step: int, length: Length) -> float:  # noqa: ARG002 - the same call for every schedule
        """Return what a step gets of the job's rate; steps count from 0."""
        return 1.0


@dataclass(frozen=True, slots=True)
class Stepped:
    """The rate times a factor after every so many epochs."""

    every_epochs: int
    factor: float

    def __post_init__(self) -> None:
        _check(self.every_epochs >= 1, f"falls every {self.every_epochs} epochs; give it at least 1")
        _check(0 < self.factor <= 1, f"has the factor {self.factor}; give it a number above 0 and at most 1")

    def share(self, step: int, length: Length) -> float:
        """Return what a step gets of the job's rate; steps count from 0."""
        return float(self.factor ** (step // (self.every_epochs * length.steps_per_epoch)))


@dataclass(frozen=True, slots=True)
class Cosine:
    """A rise in equal steps to the job's rate, then half a cosine down to a share of it at the last step."""

    warm_up_steps: int = 0
    final_share: float = 0.0

    def __post_init__(self) -> None:
        _check(self.warm_up_steps >= 0, f"warms up for {self.warm_up_steps} steps; give it at least 0")
        _check(0 <= self.final_share <= 1, f"ends at {self.final_share}; give it a share from 0 to 1")

    def share(self, step: int, length: Length) -> float:
        """Return what a step gets of the job's rate; steps count from 0."""
        if step < self.warm_up_steps:
            return (step + 1) / (self.warm_up_steps + 1)
        falling = max(1, length.steps - 1 - self.warm_up_steps)
        done = min(1.0, (step - self.warm_up_steps) / falling)
        return self.final_share + (1 - self.final_share) * (1 + math.cos(math.pi * done)) / 2


Schedule = Constant | Stepped | Cosine
"""What a TrainingJob may ask for."""


def _check(holds: bool, problem: str) -> None:
    if not holds:
        raise GraphError(f"The learning-rate schedule {problem}.")
