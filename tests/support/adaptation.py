"""A model that learnt clean digits, and what each method makes of it when the camera was turned or inverted."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import ndimage

from hedgerow_agent.core.data import Dataset, augmentation
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.training import Schedule, TrainingRun
from hedgerow_agent.trainer.backend import open_backend
from hedgerow_plans.methods.catalogue import Full, LiteResidual, Lora, Method
from hedgerow_plans.models import zoo
from hedgerow_plans.plan import Plan, Program
from hedgerow_plans.planning.ladder import Task, build_ladder, plan_evaluation, training_problems
from hedgerow_plans.planning.problem import DeviceCosts, Measures
from hedgerow_plans.planning.residents import place_residents
from hedgerow_plans.planning.strategies import Limits
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Adam
from hedgerow_plans.training.schedules import Cosine
from hedgerow_plans.tuning import tuned
from support.digits import digits

BATCH = 32
BASE_SAMPLES, FIELD_SAMPLES = 700, 700
"""What the base model learns from, and what a device has; the others are held out and decide nothing."""

CHANNELS = 16
PLENTY = 2**40


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a method is used: the fewer numbers it trains, the larger steps it can take."""

    method: Method
    learning_rate: float
    epochs: int = 30


FULL = Recipe(Full(), 0.003)
RECIPES = {
    "lora": Recipe(Lora(2), 0.03),
    "bias": Recipe(LiteResidual(residuals=False), 0.03),
    "tinytl": Recipe(LiteResidual(), 0.01),
}
"""Rates are the best of 0.001, 0.003, 0.01 and 0.03 on what a device keeps apart of its own samples
(`Adapted.on_validation`, the mean over both drifts); what is held out was looked at afterwards, once.

Biases train together with the last layer, as in TinyTL. Alone they cannot turn a filter's sign, and fall short of nine
tenths where an image is inverted.
"""


@dataclass(frozen=True, slots=True)
class Adapted:
    """What a method came to, on samples that neither training nor the choice of recipes has seen."""

    before: float
    after: float
    trained_numbers: int
    on_validation: float  # after training, on what the device keeps apart

    @property
    def gain(self) -> float:
        """What was won back."""
        return self.after - self.before


def rotated(x: Array, degrees: float) -> Array:
    """Turn images about their centre."""
    turned = ndimage.rotate(x, degrees, axes=(3, 2), reshape=False, order=1)
    return np.asarray(np.clip(turned, 0, 1), np.float32)


DRIFTS: dict[str, Callable[[Array], Array]] = {
    "rotated": lambda x: rotated(x, 40.0),
    "inverted": lambda x: np.asarray(1 - x, np.float32),
}


@cache
def base_model() -> dict[str, Array]:
    """Train on clean digits, moved, tilted and noisy, as anybody would who ships a model."""

    def tilt(sample: Array, word: int) -> None:
        degrees = (word % 2001 / 1000 - 1) * 20
        sample[...] = ndimage.rotate(sample, degrees, axes=(2, 1), reshape=False, order=1)

    clean, _, _ = _parts()
    augment = augmentation.together([tilt, augmentation.shift(1), augmentation.noise(0.2)])
    executor = _executor(Full(), {})
    run = TrainingRun(executor, clean, Schedule(40, 0.003, 1, Cosine(10), augment))
    while not run.done:
        run.run_step()
    return executor.delta()


@cache
def adapt(drift: str, recipe: Recipe) -> Adapted:
    """Train the base model on drifted digits that it never saw."""
    _, field, held_out = (Dataset(DRIFTS[drift](part.x), part.y) for part in _parts())
    executor = _executor(recipe.method, base_model())
    run = TrainingRun(executor, field, Schedule(recipe.epochs, recipe.learning_rate, 1, Cosine(10)))
    before = executor.evaluate(held_out.x, held_out.y).accuracy or 0.0
    while not run.done:
        run.run_step()
    after = executor.evaluate(held_out.x, held_out.y).accuracy or 0.0
    numbers = sum(tensor.size for tensor in executor.delta().values())
    return Adapted(before, after, numbers, _kept_apart(run))


def _executor(method: Method, weights: dict[str, Array]) -> Executor:
    """Return what trains a method as a device with memory to spare would: tuned, by what computes on this machine."""
    return Executor(_program(method), weights, seed=1, backend=open_backend(None, os.environ).backend)


def _kept_apart(run: TrainingRun) -> float:
    parts = (run.validate(), run.test())
    return sum((part.accuracy or 0) * part.count for part in parts) / sum(part.count for part in parts)


def _parts() -> tuple[Dataset, ...]:
    """Return what the base model learns from, what devices have, and what is held out."""
    order = np.random.default_rng(0).permutation(len(digits().y))
    chosen = np.split(order, (BASE_SAMPLES, BASE_SAMPLES + FIELD_SAMPLES))
    return tuple(Dataset(digits().x[part], digits().y[part]) for part in chosen)


def _program(method: Method) -> Program:
    graph = method.apply(zoo.build("cnn-small", channels=CHANNELS)).graph
    graphs = tuned(differentiate(graph, Adam(), BATCH), PLENTY, BATCH)
    residents = place_residents(graphs.all())
    task = Task(residents, DeviceCosts(10**9, 1), BATCH, Measures())
    rungs = build_ladder(training_problems(task, graphs.direct, None), Limits(PLENTY, keep_going=lambda: False))
    assert isinstance(rungs, tuple)
    evaluation = plan_evaluation(task, graphs.evaluate, Limits(rungs[0].promise.peak_bytes))
    assert isinstance(evaluation, Plan)
    return Program(
        model="cnn-small",
        method=method.name,
        device_class="test",
        batch_size=BATCH,
        graphs=graphs.all(),
        delta=graphs.delta,
        resident=residents.placements,
        resident_bytes=residents.bytes,
        mapped=(),
        rungs=rungs[:1],
        evaluation=evaluation,
    )
