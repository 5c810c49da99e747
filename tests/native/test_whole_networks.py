"""Whole steps of the five workloads on the compiled backend: how near to 64 bits, in which bytes, in how many calls."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from bench_core.core import samples
from bench_core.workloads import Workload
from hedgerow_agent.core.compilation import Backend
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.initial import initial_value
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.native.library import Library
from hedgerow_agent.core.native.segments import NativeBackend
from hedgerow_plans.models import zoo
from hedgerow_plans.plan import Program
from hedgerow_plans.training.optimizers import Sgd
from support.kernel_calls import Laboratory
from support.native_records import REDUCED, Recorder, program_of_workload

LOSS_DISTANCE = 1e-5
"""How far a loss may be from the one in 64 bits, of itself."""

GRADIENT_FACTOR = 2.0
"""How much further from 64 bits than numpy's in 32 bits gradients may be: sums are taken in another order."""

RATE = 64.0
"""Large and a power of two, so that what a step subtracts is the gradient and not the rounding of the parameter."""

names = pytest.mark.parametrize("name", REDUCED)


@dataclass(frozen=True)
class Reference:
    """A workload with its program and first values, and what a step gives in 64 bits."""

    workload: Workload
    program: Program
    values: dict[str, Array]
    loss: float
    gradients: dict[str, Array]

    def step(self, backend: Backend | None) -> tuple[float, dict[str, Array]]:
        """Take one plain step in 32 bits and return the loss and the gradients."""
        executor = Executor(self.program, self.values, 0, backend=backend)
        before = executor.delta()
        loss = executor.step(*samples(self.workload), RATE).loss
        after = executor.delta()
        executor.close()
        return loss, {name: (before[name].astype(np.float64) - after[name]) / RATE for name in before}

    def distance(self, gradients: dict[str, Array]) -> float:
        """Return how far gradients are from those in 64 bits, of their length."""
        errors = [np.linalg.norm(gradients[name] - wanted) for name, wanted in self.gradients.items()]
        return float(np.linalg.norm(errors) / np.linalg.norm([np.linalg.norm(v) for v in self.gradients.values()]))


@cache
def reference(name: str) -> Reference:
    workload, rng = REDUCED[name], np.random.default_rng(1)
    program, model = program_of_workload(workload), zoo.build(workload.model, workload.classes, workload.shape)
    values = {tensor.name: initial_value(tensor, 0) for tensor in model.resident()}
    for value in (one for one in values.values() if one.ndim == 1):  # zeros and ones are moved: trivial is not right
        np.add(value, 0.1 * rng.standard_normal(value.shape), out=value, casting="same_kind")
    x, labels = samples(workload)
    wide: dict[str, Array] = {key: value.astype(np.float64) for key, value in values.items()}
    arrays = {**wide, "x": x if workload.vocabulary else x.astype(np.float64), "labels": labels}
    graph = program.graph(program.rungs[0].graph)
    found = Laboratory(workload.batch_size).run_graph(graph, {key: value.copy() for key, value in arrays.items()})
    learned = {node.updates[0] for node in graph.nodes if node.op.startswith("sgd")}  # running statistics are not
    gradients = {key: wide[key] - found[key] for key in wide if key in learned}
    return Reference(workload, program, values, float(found["losses"].mean()), gradients)


@names
def test_the_loss_is_that_of_64_bits(library: Library, name: str) -> None:
    wanted = reference(name)
    loss, _ = wanted.step(NativeBackend(library))
    print(f"FIGURE loss of {name} against 64 bits: {abs(loss - wanted.loss) / wanted.loss:.1e}")
    assert abs(loss - wanted.loss) < LOSS_DISTANCE * wanted.loss


@names
def test_gradients_are_as_near_to_64_bits_as_numpys(library: Library, name: str) -> None:
    wanted = reference(name)
    _, numpys = wanted.step(None)
    _, ours = wanted.step(NativeBackend(library))
    allowed, found = wanted.distance(numpys), wanted.distance(ours)
    print(f"FIGURE gradients of {name} against 64 bits: numpy {allowed:.1e}, native {found:.1e}")
    assert 0 < found <= GRADIENT_FACTOR * allowed


@names
def test_a_step_uses_exactly_the_promised_bytes(library: Library, name: str) -> None:
    wanted = reference(name)
    executor = Executor(wanted.program, wanted.values, 0, backend=NativeBackend(library, 2))
    measured = executor.measure(*samples(wanted.workload), 0.01).measured_peak_bytes
    executor.close()
    assert measured == wanted.program.rungs[0].promise.peak_bytes


@names
def test_only_samples_and_labels_are_fetched_by_numpy(library: Library, name: str) -> None:
    """With momentum, where no weight is updated as its gradient is made."""
    program, recorder = program_of_workload(REDUCED[name], Sgd(0.9)), Recorder(library)
    executor = Executor(program, {}, 0, backend=recorder)
    calls = len(executor._training.begin) + len(executor._training.body) + len(executor._training.finish)
    executor.close()
    assert set(recorder.left_to_numpy) == {"input"}
    assert calls == 4  # each of two fetches, and all that follows it in one piece
