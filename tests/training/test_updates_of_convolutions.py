"""With plain SGD the gradient of a convolution's weight goes straight into it, whichever way it is computed."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_agent.core.blas import find_blas
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels import sinks
from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph import table
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Graph, Node, Order, Role, Tensor
from hedgerow_plans.graph.ops.convolution_ways import Way
from hedgerow_plans.methods.selection import Full
from hedgerow_plans.models import zoo
from hedgerow_plans.training.graphs import TrainingGraphs, differentiate
from hedgerow_plans.training.optimizers import Adam, Optimizer, Sgd
from hedgerow_plans.tuning import LEAST_BUDGET_BYTES, tuned
from hedgerow_plans.tuning.updates import MOST_TERMS
from support.convolutions import Case, dense, drawn, trained_layer, update, winograd
from support.gradients import sample, seeds
from support.kernel_calls import Laboratory
from support.programs import program_of, same_micro_batch

RATE, BATCH, BUDGET_BYTES = 0.25, 4, 256 * 1024 * 1024
LARGE = Case((40, 30, 30), (12, 40, 3, 3), {"stride": 2, "padding": 1}, 9)
"""More patches than one tile holds."""


def moved_by_its_gradient(case: Case, arrays: dict[str, Array]) -> Array:
    """Return what becomes of the weight, by the gradient that is computed sample by sample in 64 bits."""
    known = {name: replace(tensor, order=Order.SAMPLES) for name, tensor in trained_layer(case).items()}
    node = Node("dw", "conv2d_grad_weight", ("dy", "x"), ("dw",), attributes={**case.attributes, "shape": case.weight})
    wide = {name: array.astype(np.float64) for name, array in arrays.items()}
    moved: Array = wide["w"] - RATE * Laboratory(case.samples).run(node, known, wide)["dw"]
    return moved


def check(case: Case, way: Way, dtype: str, seed: int) -> None:
    tensors, arrays = trained_layer(case), drawn(case, dtype, seed)
    wanted, before = moved_by_its_gradient(case, arrays), {name: arrays[name].copy() for name in ("x", "dy")}
    table.check_orders(update(case, way), tensors)
    lab = Laboratory(case.samples, dtype, learning_rate=RATE)
    lab.run(update(case, way), tensors, arrays)
    scale = max(1.0, float(np.abs(wanted).max()))
    assert np.abs(arrays["w"] - wanted).max() <= scale * (1e-5 if dtype == "float32" else 1e-11)
    assert all(np.array_equal(arrays[name], array) for name, array in before.items())
    reached, promised = lab.scratch_reached["sgd"]
    assert reached == promised


dtypes, plain_ways = st.sampled_from(("float32", "float64")), st.sampled_from((Way.TAPS, Way.UNFOLD))


@given(dense(), plain_ways, dtypes, seeds)
def test_a_convolution_moves_as_by_its_gradient(case: Case, way: Way, dtype: str, seed: int) -> None:
    check(case, way, dtype, seed)


@given(winograd(), dtypes, seeds)
def test_a_convolution_in_winograds_way_moves_as_by_its_gradient(case: Case, dtype: str, seed: int) -> None:
    check(case, Way.WINOGRAD, dtype, seed)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("way", [Way.TAPS, Way.UNFOLD])
def test_a_convolution_of_several_tiles_moves_as_by_its_gradient(way: Way, dtype: str) -> None:
    check(LARGE, way, dtype, 1)


@pytest.mark.parametrize("way", [Way.TAPS, Way.UNFOLD])
def test_so_it_does_where_numpys_blas_is_not_known(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_blas() is not None
    monkeypatch.setattr(sinks, "find_blas", lambda: None)
    check(LARGE, way, "float32", 1)


def test_tiles_need_no_room_for_their_sum() -> None:
    gradient = Node(
        "dw", "conv2d_grad_weight", ("dy", "x"), ("dw",), attributes={**LARGE.attributes, "shape": LARGE.weight}
    )
    tensors = trained_layer(LARGE)
    written = {**tensors, "dw": replace(tensors["w"], name="dw")}
    weight_bytes = tensors["w"].bytes(1)
    saved = table.scratch_bytes(gradient, written, LARGE.samples) - table.scratch_bytes(
        update(LARGE, Way.UNFOLD), tensors, LARGE.samples
    )
    assert saved == weight_bytes


def tuned_graphs(model: str, optimizer: Optimizer) -> TrainingGraphs:
    return tuned(differentiate(Full().apply(zoo.build(model)).graph, optimizer, BATCH), BUDGET_BYTES, BATCH)


def ops(graph: Graph | None) -> Counter[str]:
    assert graph is not None
    return Counter(node.op for node in graph.nodes)


def test_a_tuned_graph_writes_no_gradient_of_a_large_weight_where_the_optimizer_allows_it() -> None:
    plain = ops(tuned_graphs("resnet18", Sgd()).direct)
    assert plain["sgd_conv2d"] + plain["conv2d_grad_weight"] == plain["conv2d"] == 20
    assert plain["sgd_conv2d"] == 7  # of 224x224: those of 14x14 and of 7x7, where a weight is larger than its images
    for optimizer in (Sgd(momentum=0.9), Sgd(weight_decay=1e-4), Adam()):
        assert ops(tuned_graphs("resnet18", optimizer).direct)["sgd_conv2d"] == 0


def test_gradients_of_micro_batches_are_written() -> None:
    graphs = tuned_graphs("mobilenetv2-0.35", Sgd())
    assert ops(graphs.direct)["sgd_conv2d"] > 0
    assert ops(graphs.in_pieces)["sgd_conv2d"] == 0


@pytest.mark.parametrize("model", ["resnet18", "mobilenetv2-0.35"])
def test_no_long_sum_and_no_small_gradient_goes_straight_into_a_weight(model: str) -> None:
    graph = tuned_graphs(model, Sgd()).direct
    tensors = graph.by_name()
    updates = [node for node in graph.nodes if node.op == "sgd_conv2d"]
    assert updates
    for node in updates:
        gradient, x, weight = (tensors[name] for name in (*node.inputs, *node.updates))
        assert weight.elements >= BATCH * x.elements  # which live longer for it
        terms = BATCH * gradient.shape[1] * gradient.shape[2]
        assert terms <= MOST_TERMS or node.attributes["algorithm"] == Way.WINOGRAD


@pytest.mark.parametrize(
    ("case", "way"),
    [
        (Case((64, 8, 8), (32, 64, 3, 3), {"padding": 1}, 8), Way.UNFOLD),
        (Case((64, 8, 8), (32, 64, 3, 3), {"padding": 1}, 8), Way.TAPS),
        (Case((64, 8, 8), (32, 64, 1, 1), {}, 8), Way.UNFOLD),
        (Case((32, 16, 16), (32, 32, 3, 3), {"padding": 1}, 8), Way.WINOGRAD),
    ],
)
def test_small_steps_are_rounded_away_no_more_than_by_sgd(case: Case, way: Way) -> None:
    tensors, arrays = trained_layer(case), drawn(case, "float32", 1)
    arrays["dy"] *= np.float32(3e-6 / np.sqrt(case.samples * case.image[1] * case.image[2]))
    wanted, before = moved_by_its_gradient(case, arrays), arrays["w"].copy()
    Laboratory(case.samples, "float32", learning_rate=RATE).run(update(case, way), tensors, arrays)
    rounded_once = wanted.astype("f4")
    moved = np.abs(wanted - before)
    assert 3e-7 < np.median(moved / np.abs(before)) < 3e-6
    assert np.abs(arrays["w"] - wanted).mean() < 2 * np.abs(rounded_once - wanted).mean()


def test_rungs_and_switches_between_them_change_no_bit(tmp_path: Path) -> None:
    network = zoo.build("resnet18", 5, (3, 32, 32), width=0.5)
    program = program_of(network, Full(), BATCH, budget_bytes=LEAST_BUDGET_BYTES, optimizer=Sgd())
    assert ops(program.graph("direct"))["sgd_conv2d"] > 0
    rungs, rng = same_micro_batch(program), np.random.default_rng(2)
    assert {"keep-all", "paging", "segments-3"} <= {program.rungs[rung].strategy for rung in rungs}
    switching = Executor(program, {}, seed=1, paging_folder=tmp_path)
    staying = [Executor(program, {}, seed=1, rung=rung, paging_folder=tmp_path) for rung in rungs]
    for rung in (*rungs, *reversed(rungs)):
        switching.switch(rung)
        x = rng.standard_normal((BATCH, 3, 32, 32)).astype(np.float32)
        y = rng.integers(0, 5, BATCH).astype(np.int32)
        loss = switching.step(x, y, 0.05).loss
        assert all(executor.step(x, y, 0.05).loss == loss for executor in staying)
    assert {executor.resident_state() for executor in staying} == {switching.resident_state()}
    for executor in (switching, *staying):
        executor.close()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (replace(trained_layer(LARGE)["w"], role=Role.FROZEN), "'w' is frozen; it can only update a trainable tensor"),
        (sample("dy", 12, 15, 14), "'dy' has shape [12, 15, 14]; give it shape [12, 15, 15]"),
    ],
    ids=["a frozen weight", "another gradient"],
)
def test_what_does_not_go_together_is_refused(wrong: Tensor, sentence: str) -> None:
    with pytest.raises(GraphError, match=re.escape(sentence)):
        table.infer(update(LARGE, Way.UNFOLD), {**trained_layer(LARGE), wrong.name: wrong})


def test_a_depthwise_window_and_images_by_samples_are_left_to_sgd() -> None:
    by_samples = {name: replace(tensor, order=Order.SAMPLES) for name, tensor in trained_layer(LARGE).items()}
    assert not table.takes_orders(update(LARGE, Way.UNFOLD), by_samples)
    window = Case((6, 8, 8), (6, 1, 3, 3), {"padding": 1, "groups": 6}, 2)
    tensors = {
        name: replace(tensor, order=Order.PIXELS) for name, tensor in trained_layer(window).items() if name != "w"
    }
    depthwise = {**tensors, "w": replace(trained_layer(window)["w"], order=Order.SAMPLES)}
    assert not table.takes_orders(update(window, Way.DEPTHWISE), depthwise)
