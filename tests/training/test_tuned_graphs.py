"""Graphs tuned for speed compute what they computed before, on every rung, in exactly the bytes they promise."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph.ir import Graph, Order, Tensor
from hedgerow_plans.graph.validate import check
from hedgerow_plans.methods.catalogue import Method
from hedgerow_plans.methods.lora import Lora
from hedgerow_plans.methods.selection import Bias, Full, Last
from hedgerow_plans.models import zoo
from hedgerow_plans.plan import Program
from hedgerow_plans.training.graphs import TrainingGraphs, differentiate
from hedgerow_plans.training.optimizers import Adam, Optimizer, Sgd
from hedgerow_plans.tuning import LEAST_BUDGET_BYTES, tuned
from support.kernel_calls import Laboratory
from support.layer_networks import CASES
from support.programs import program_of, same_micro_batch
from support.small_models import inverted_residual, small_cnn

BATCH = 4
PATTERNS = (0xA5, 0x5A)
BUDGET = LEAST_BUDGET_BYTES


def residual() -> Graph:
    """A net whose layers are computed in every way there is: Winograd's, by taps, unfolded."""
    return zoo.build("resnet18", 5, (3, 32, 32), width=0.5)


def narrow() -> Graph:
    """A net without norms, whose images lie by channels."""
    return zoo.build("cnn-small", input_shape=(3, 12, 12))


NETWORKS: list[Callable[[], Graph]] = [residual, narrow, small_cnn, inverted_residual, CASES[0].build, CASES[1].build]
networks = pytest.mark.parametrize("build", NETWORKS, ids=lambda build: build.__name__)
methods = pytest.mark.parametrize("method", [Full(), Bias(), Lora(2)], ids=lambda method: method.name)


def loss_of(build: Callable[[], Graph]) -> str:
    return next((case.loss for case in CASES if case.build is build), "cross_entropy")


def pair(build: Callable[[], Graph], method: Method, optimizer: Optimizer) -> tuple[TrainingGraphs, TrainingGraphs]:
    """Return the graphs as differentiating makes them, and as they are tuned."""
    plain = differentiate(method.apply(build()).graph, optimizer, BATCH, loss_of(build))
    return plain, tuned(plain, BUDGET, BATCH)


def values(tensors: tuple[Tensor, ...]) -> dict[str, Array]:
    """Draw what survives a step, above zero as variances are."""
    rng = np.random.default_rng(7)
    return {
        tensor.name: np.zeros((), np.int32) if tensor.shape == () else 0.2 * rng.random(tensor.shape)
        for tensor in tensors
    }


def feed(graph: Graph, build: Callable[[], Graph]) -> dict[str, Array]:
    rng, tensors = np.random.default_rng(8), graph.by_name()
    arrays: dict[str, Array] = {"x": rng.standard_normal((BATCH, *tensors["x"].shape))}
    target = tensors["labels"]
    arrays["labels"] = rng.integers(0, 3, BATCH) if target.shape == () else rng.random((BATCH, *target.shape))
    return arrays


@methods
@networks
def test_they_train_and_evaluate_as_before(build: Callable[[], Graph], method: Method) -> None:
    plain, fast = pair(build, method, Sgd(0.9, 1e-4))
    assert any(tensor.order is not Order.SAMPLES for tensor in fast.direct.tensors)
    for before, after in zip(plain.all(), fast.all(), strict=True):
        check(after)
        assert [tensor.name for tensor in before.resident()] == [tensor.name for tensor in after.resident()]
        results = []
        for graph in (before, after):
            arrays = {**values(before.resident()), **feed(before, build)}
            Laboratory(BATCH).run_graph(graph, arrays)
            results.append({name: arrays[name] for name in ("losses", *(t.name for t in before.resident()))})
        for name, wanted in results[0].items():
            assert np.allclose(results[1][name], wanted, rtol=1e-8, atol=1e-8), (before.name, name)


def test_an_optimiser_with_state_follows_the_order_of_its_weights() -> None:
    plain, fast = pair(residual, Full(), Adam())
    results = []
    for graph in (plain.direct, fast.direct):
        arrays = {**values(plain.direct.resident()), **feed(plain.direct, residual)}
        Laboratory(BATCH).run_graph(graph, arrays)
        results.append({name: arrays[name] for name in plain.delta})
    assert all(np.allclose(results[0][name], results[1][name], rtol=1e-7, atol=1e-7) for name in plain.delta)
    orders = {tensor.name: tensor.order for tensor in fast.direct.resident()}
    assert orders["layer1.0.conv1.weight"] is orders["moment1.layer1.0.conv1.weight"] is Order.TAPS


@networks
def test_scratch_is_used_to_its_last_byte_and_not_beyond(build: Callable[[], Graph]) -> None:
    for graph in pair(build, Full(), Sgd())[1].all():
        reached: dict[str, int] = {}
        promised: dict[str, int] = {}
        for pattern in PATTERNS:
            lab = Laboratory(BATCH, "float32", pattern)
            arrays = {**values(graph.resident()), **feed(graph, build)}
            arrays = {k: v.astype(np.float32) if v.dtype == np.float64 else v for k, v in arrays.items()}
            lab.run_graph(graph, arrays)
            for name, (end, promise) in lab.scratch_reached.items():
                reached[name], promised[name] = max(reached.get(name, 0), end), promise
        assert reached == promised


def batches(program: Program) -> Iterator[tuple[Array, Array]]:
    rng, x = np.random.default_rng(3), program.graph("direct").by_name()["x"]
    while True:
        samples = rng.standard_normal((program.batch_size, *x.shape)).astype(np.float32)
        yield samples, rng.integers(0, 3, program.batch_size).astype(np.int32)


def train(program: Program, rung: int, folder: Path) -> bytes:
    executor, source = Executor(program, {}, seed=1, rung=rung, paging_folder=folder), batches(program)
    executor.step(*next(source), 0.05)
    result = executor.measure(*next(source), 0.05)
    assert result.measured_peak_bytes == program.rungs[rung].promise.peak_bytes
    state = executor.resident_state()
    executor.close()
    return state


@pytest.mark.parametrize("method", [Full(), Last(), Lora(2)], ids=lambda method: method.name)
@pytest.mark.parametrize("build", [narrow, small_cnn, inverted_residual], ids=lambda build: build.__name__)
def test_every_rung_gives_the_same_bits(build: Callable[[], Graph], method: Method, tmp_path: Path) -> None:
    program = program_of(build(), method, 6, budget_bytes=BUDGET)
    rungs = same_micro_batch(program)
    assert {"keep-all", "paging", "segments-3"} <= {program.rungs[rung].strategy for rung in rungs}
    first, *others = (train(program, rung, tmp_path) for rung in rungs)
    assert all(other == first for other in others)
    for rung in set(range(len(program.rungs))) - set(rungs):
        train(program, rung, tmp_path)


def test_a_delta_is_the_same_array_whatever_the_order_it_lies_in() -> None:
    program = program_of(residual(), Full(), BATCH, budget_bytes=BUDGET)
    executor = Executor(program, {}, seed=1)
    delta = executor.delta()
    changed = {name: value + 1 for name, value in delta.items()}
    executor.load_delta(changed)
    assert all(np.array_equal(executor.delta()[name], value) for name, value in changed.items())
    plain = Executor(program_of(residual(), Full(), BATCH), {}, seed=1).delta()
    assert all(np.array_equal(delta[name], value) for name, value in plain.items())
    executor.close()
