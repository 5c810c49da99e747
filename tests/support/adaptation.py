"""Models that learnt clean digits, and what each method makes of them when the camera was turned or inverted."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy import ndimage

from hedgerow_agent.core.data import Dataset, augmentation
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.training import Schedule, TrainingRun
from hedgerow_agent.trainer.backend import open_backend
from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.methods.catalogue import Bias, Full, LiteResidual, Lora, Method
from hedgerow_plans.models import zoo
from hedgerow_plans.plan import Plan, Program
from hedgerow_plans.planning.ladder import Task, build_ladder, plan_evaluation, training_problems
from hedgerow_plans.planning.problem import DeviceCosts, Measures
from hedgerow_plans.planning.residents import place_residents
from hedgerow_plans.planning.strategies import Limits
from hedgerow_plans.protocol.messages import BackendName
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Adam
from hedgerow_plans.training.schedules import Cosine
from hedgerow_plans.tuning import tuned
from support.digits import digits

BATCH = 32
BASE_SAMPLES, FIELD_SAMPLES = 700, 700
"""What the base model learns from, and what a device has; the others are held out and decide nothing."""

PLENTY = 2**40


@dataclass(frozen=True, slots=True)
class Network:
    """A network of the zoo in one of its widths."""

    model: str
    name_of_width: str
    width: float

    def graph(self) -> Graph:
        """Return it for images of digits."""
        return zoo.build(self.model, 10, (1, 8, 8), **{self.name_of_width: self.width})


PLAIN = Network("cnn-small", "channels", 16)
NORMED = Network("ds-cnn", "width", 2.0)
"""Nine convolutions, each with a bias and a norm behind it: 2,314 biases and shifts of 82,314 parameters."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a method is used: the fewer numbers it trains, the larger steps it can take."""

    method: Method
    learning_rate: float
    epochs: int = 30
    network: Network = PLAIN

    def in_full(self) -> "Recipe":
        """Return what it is compared with: all parameters of the same network, as long."""
        return replace(self, method=Full(), learning_rate=FULL_RATE)


FULL_RATE = 0.003
RECIPES = {
    "lora": Recipe(Lora(2), 0.03),
    "bias": Recipe(Bias(), 0.1, 60, NORMED),
    "bias and last layer": Recipe(LiteResidual(residuals=False), 0.03),
    "tinytl": Recipe(LiteResidual(), 0.01),
}
"""Rates are the best of 0.001, 0.003, 0.01, 0.03 and 0.1 on what a device keeps apart of its own samples
(`Adapted.on_validation`, the mean over both drifts); what is held out decides nothing.

Biases alone turn no filter's sign; where a norm's shift stands behind every filter, there are enough of them to choose
other filters. The network without norms has 122 biases, which win back half of inverted digits; there the last layer
trains with them, as TinyTL has it.
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
def base_model(network: Network, backend: BackendName | None) -> dict[str, Array]:
    """Train on clean digits, moved, tilted and noisy, as anybody would who ships a model."""

    def tilt(sample: Array, word: int) -> None:
        degrees = (word % 2001 / 1000 - 1) * 20
        sample[...] = ndimage.rotate(sample, degrees, axes=(2, 1), reshape=False, order=1)

    clean, _, _ = _parts()
    augment = augmentation.together([tilt, augmentation.shift(1), augmentation.noise(0.2)])
    executor = _executor(network, Full(), {}, backend)
    run = TrainingRun(executor, clean, Schedule(40, FULL_RATE, 1, Cosine(10), augment))
    while not run.done:
        run.run_step()
    return executor.delta()


@cache
def adapt(drift: str, recipe: Recipe, backend: BackendName | None = None) -> Adapted:
    """Train the base model on drifted digits that it never saw, by the backend named or what computes here."""
    _, field, held_out = (Dataset(DRIFTS[drift](part.x), part.y) for part in _parts())
    network = recipe.network
    executor = _executor(network, recipe.method, base_model(network, backend), backend)
    run = TrainingRun(executor, field, Schedule(recipe.epochs, recipe.learning_rate, 1, Cosine(10)))
    before = executor.evaluate(held_out.x, held_out.y).accuracy or 0.0
    while not run.done:
        run.run_step()
    after = executor.evaluate(held_out.x, held_out.y).accuracy or 0.0
    numbers = sum(tensor.size for tensor in executor.delta().values())
    return Adapted(before, after, numbers, _kept_apart(run))


def _executor(network: Network, method: Method, weights: dict[str, Array], backend: BackendName | None) -> Executor:
    """Return what trains a method as a device with memory to spare would: tuned."""
    return Executor(_program(network, method), weights, seed=1, backend=open_backend(backend, {}).backend)


def _kept_apart(run: TrainingRun) -> float:
    parts = (run.validate(), run.test())
    return sum((part.accuracy or 0) * part.count for part in parts) / sum(part.count for part in parts)


def _parts() -> tuple[Dataset, ...]:
    """Return what the base model learns from, what devices have, and what is held out."""
    order = np.random.default_rng(0).permutation(len(digits().y))
    chosen = np.split(order, (BASE_SAMPLES, BASE_SAMPLES + FIELD_SAMPLES))
    return tuple(Dataset(digits().x[part], digits().y[part]) for part in chosen)


def _program(network: Network, method: Method) -> Program:
    graph = method.apply(network.graph()).graph
    graphs = tuned(differentiate(graph, Adam(), BATCH), PLENTY, BATCH)
    residents = place_residents(graphs.all())
    task = Task(residents, DeviceCosts(10**9, 1), BATCH, Measures())
    rungs = build_ladder(training_problems(task, graphs.direct, None), Limits(PLENTY, keep_going=lambda: False))
    assert isinstance(rungs, tuple)
    evaluation = plan_evaluation(task, graphs.evaluate, Limits(rungs[0].promise.peak_bytes))
    assert isinstance(evaluation, Plan)
    return Program(
        model=network.model,
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
