"""Steps of a program in 64 bits, where a batch in pieces must train what the whole batch trains.

In 32 bits the order of sums decides the last bits, and a rectifier that stands on the edge makes much of them. In 64
bits so little is lost that what is left apart after several steps is a mistake.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hedgerow_agent.core.arena import Arena
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.residents import Residents
from hedgerow_plans.plan import Plan, Program
from support.kernel_calls import Laboratory, Moment

WIDE_DISTANCE = 1e-9
"""How far apart tensors may be after steps in 64 bits, of their largest number; rounding stays near 1e-15."""


@dataclass(frozen=True)
class WideTraining:
    """A program, what it begins with, and the batch of every step."""

    program: Program
    weights: Mapping[str, Array]
    seed: int
    batch: tuple[Array, Array]
    rate: float

    def after(self, plan: Plan, steps: int) -> dict[str, Array]:
        """Return what survives steps in the graph and micro-batches of a plan."""
        residents, (x, labels) = self.first_residents(), self.batch
        for step in range(steps):
            lab = Laboratory(plan.micro_batch, now=Moment(self.seed, step), learning_rate=self.rate)
            lab.run_step(self.program.graph(plan.graph), {**residents, "x": wide(x), "labels": labels})
        return residents

    def first_residents(self) -> dict[str, Array]:
        """Return what an executor begins with."""
        arena = Arena(self.program.resident_bytes)
        views = Residents(self.program, arena, self.weights, self.seed).views
        residents = {name: wide(view) for name, view in views.items()}
        arena.close()
        return residents


def wide(array: Array) -> Array:
    """Return a copy in 64 bits of what is in 32, and a plain copy of anything else."""
    return array.astype(np.float64 if array.dtype == np.float32 else array.dtype)


def distances(found: Mapping[str, Array], wanted: Mapping[str, Array]) -> dict[str, float]:
    """Return how far apart tensors are by name, relative to the largest number of each."""
    return {name: _distance(found[name], values) for name, values in wanted.items()}


def too_far(found: Mapping[str, Array], wanted: Mapping[str, Array]) -> dict[str, float]:
    """Return the distances that no rounding explains; what is not a number is too far as well."""
    return {name: apart for name, apart in distances(found, wanted).items() if not apart <= WIDE_DISTANCE}


def _distance(found: Array, wanted: Array) -> float:
    scale = float(np.abs(wanted).max(initial=0.0)) or 1.0
    return float(np.abs(found - wanted).max(initial=0.0)) / scale
