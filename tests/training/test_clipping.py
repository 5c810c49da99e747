"""Clipped gradients: what the updates do with them, what plans count, and that every rung agrees."""

import math
from functools import cache

import numpy as np
import pytest

from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Order, Section
from hedgerow_plans.methods.selection import Full
from hedgerow_plans.models import zoo
from hedgerow_plans.plan import Program
from hedgerow_plans.program import DeviceCosts, ProgramRequest, build_program
from hedgerow_plans.training.clipping import ByGlobalNorm, ByValue, Clipping
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Adam, Adam8bit, Optimizer, Sgd
from hedgerow_plans.verify import verify_program

BATCH = 12
RATE = 0.05
PLENTY = 1 << 40
OPTIMIZERS: list[Optimizer] = [Sgd(), Sgd(0.9, 1e-4), Adam(), Adam8bit()]


@cache
def planned(optimizer: Optimizer, clipping: Clipping | None, budget_bytes: int = 1 << 20) -> Program:
    request = ProgramRequest(
        "cnn-small", Full(), optimizer, BATCH, "test", DeviceCosts(10**9, 1), budget_bytes, clipping=clipping
    )
    program = build_program(request)
    assert isinstance(program, Program)
    assert verify_program(program) == ()
    return program


def batch(scale: float = 1.0) -> tuple[Array, Array]:
    rng = np.random.default_rng(3)
    x = scale * rng.standard_normal((BATCH, 1, 8, 8)).astype(np.float32)
    return x.astype(np.float32), rng.integers(0, 10, BATCH, dtype=np.int32)


def gradients(clipping: Clipping | None, budget_bytes: int = 1 << 20) -> dict[str, Array]:
    """Return what one plain step subtracts, divided by the rate."""
    executor = Executor(planned(Sgd(), clipping, budget_bytes), {}, seed=1)
    before = executor.delta()
    executor.step(*batch(), RATE)
    after = executor.delta()
    return {name: (before[name] - after[name]) / RATE for name in before}


def norm(arrays: dict[str, Array]) -> float:
    return math.sqrt(sum(float((array.astype(np.float64) ** 2).sum()) for array in arrays.values()))


def test_values_are_cut_at_the_limit_and_small_ones_stay() -> None:
    limit = 0.01
    free, cut = gradients(None), gradients(ByValue(limit))
    assert max(np.abs(array).max() for array in free.values()) > 2 * limit
    for name, array in free.items():
        assert np.allclose(cut[name], np.clip(array, -limit, limit), atol=1e-5)


def test_all_gradients_shrink_by_one_factor_to_the_norm() -> None:
    free = gradients(None)
    limit = norm(free) / 3
    shrunk = gradients(ByGlobalNorm(limit))
    assert norm(shrunk) == pytest.approx(limit, rel=1e-3)
    for name, array in free.items():
        assert np.allclose(shrunk[name], array / 3, atol=1e-5)


def test_with_memory_to_spare_the_norm_is_that_of_weights_in_other_orders_too() -> None:
    limit = norm(gradients(None)) / 3
    tuned = planned(Sgd(), ByGlobalNorm(limit), PLENTY)
    assert {tensor.order for graph in tuned.graphs for tensor in graph.tensors} > {Order.SAMPLES}
    lean, quick = gradients(ByGlobalNorm(limit)), gradients(ByGlobalNorm(limit), PLENTY)
    assert all(np.allclose(quick[name], lean[name], atol=1e-5) for name in lean)


def test_a_norm_within_the_limit_changes_no_bit() -> None:
    free, clipped = gradients(None), gradients(ByGlobalNorm(10 * norm(gradients(None))))
    assert all(np.array_equal(free[name], clipped[name]) for name in free)


@pytest.mark.parametrize("clipping", [ByValue(0.01), ByGlobalNorm(0.5)], ids=str)
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=str)
def test_every_rung_clips_alike_in_the_bytes_it_promised(optimizer: Optimizer, clipping: Clipping) -> None:
    program = planned(optimizer, clipping)
    assert len({rung.micro_batches for rung in program.rungs}) > 2
    results = []
    for rung, plan in enumerate(program.rungs):
        executor = Executor(program, {}, seed=1, rung=rung)
        assert executor.measure(*batch(), RATE).measured_peak_bytes == plan.promise.peak_bytes
        results.append(executor.delta())
    for other in results[1:]:
        assert all(np.allclose(results[0][name], other[name], rtol=1e-3, atol=1e-4) for name in other)


def test_the_norm_keeps_every_gradient_and_the_plan_counts_them() -> None:
    """Without it a gradient dies with its update; with it all of them are live when the factor is made."""
    graph = differentiate(Full().apply(zoo.build("cnn-small")).graph, Sgd(), BATCH, clipping=ByGlobalNorm(1.0)).direct
    names = [node.name for node in graph.nodes]
    at = names.index("clip.factor")
    updates = [node for node in graph.nodes if node.op == "sgd"]
    assert all(names.index(node.name) > at for node in updates)
    assert sum(node.op == "sum_squares" for node in graph.nodes) == len(updates)
    tensors = graph.by_name()
    kept = sum(tensors[node.inputs[0]].bytes(BATCH) for node in updates)
    program = planned(Sgd(), ByGlobalNorm(1.0))
    at_factor = program.resident_bytes + kept
    assert all(rung.promise.peak_bytes >= at_factor for rung in program.rungs)
    assert min(rung.bounds.max_live_bytes for rung in planned(Sgd(), None).rungs if rung.micro_batches == 1) < min(
        rung.bounds.max_live_bytes for rung in program.rungs if rung.micro_batches == 1
    )


def test_in_pieces_the_norm_is_that_of_the_sums() -> None:
    graphs = differentiate(Full().apply(zoo.build("mlp")).graph, Sgd(), BATCH, clipping=ByGlobalNorm(1.0))
    squares = [node for node in graphs.accumulating.nodes if node.op == "sum_squares"]
    assert squares
    assert all(node.section is Section.FINISH and node.inputs[0].startswith("sum.") for node in squares)


@pytest.mark.parametrize("clipping", [ByValue, ByGlobalNorm])
@pytest.mark.parametrize("limit", [0.0, -1.0, math.inf, math.nan])
def test_a_limit_that_limits_nothing_is_refused(clipping: type[ByValue], limit: float) -> None:
    with pytest.raises(GraphError, match="give it a finite number above 0"):
        clipping(limit)
