"""Updates of parameters, of statistics and of optimisers' state: the library's kernels beside numpy's."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.native.library import Library
from hedgerow_plans.graph.ir import DType, Node, Order, Tensor
from hedgerow_plans.graph.ops.convolution_ways import Way
from support.convolutions import Case, dense, drawn, trained_layer, update, winograd
from support.gradients import parameter, sample, seeds
from support.native_calls import Twins
from support.twin_tests import compares, judge, state, trained

sizes, batches = st.integers(1, 40), st.integers(1, 5)
decays = st.sampled_from((0.0, 0.1))
STEPS = state("t", dtype=DType.INT32)
WIDE = [
    (Case((40, 14, 14), (70, 40, 3, 3), {"padding": 1}, 8), Way.TAPS),
    (Case((40, 14, 14), (70, 40, 3, 3), {"padding": 1, "stride": 2}, 8), Way.UNFOLD),
    (Case((64, 8, 8), (48, 64, 3, 3), {"padding": 1}, 8), Way.WINOGRAD),
    (Case((300, 4, 4), (36, 300, 1, 1), {}, 3), Way.UNFOLD),
    (Case((70, 4, 4), (36, 70, 1, 1), {"stride": 2}, 3), Way.TAPS),
]
"""Layers whose channels fill whole vectors, panels and blocks."""


@compares("sgd")
@given(
    size=st.integers(1, 5000),
    momentum=st.sampled_from((0.0, 0.9)),
    decay=decays,
    clipped=st.booleans(),
    seed=seeds,
)
def test_sgd(library: Library, *, size: int, momentum: float, decay: float, clipped: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = ("p", "v") if momentum else ("p",)
    tensors = {"p": trained("p", size), "v": state("v", size), "g": parameter("g", size)}
    attributes = {"momentum": momentum, "weight_decay": decay, **({"clip": 0.3} if clipped else {})}
    node = Node("sgd", "sgd", ("g",), (), names, attributes=attributes)
    arrays = {name: rng.standard_normal(size).astype(np.float32) for name in tensors}
    judge({"sgd": Twins(library, 1).compare(node, tensors, arrays)})


@compares("adam")
@given(size=st.integers(1, 5000), decay=decays, steps=st.integers(0, 50), seed=seeds)
def test_adam(library: Library, size: int, decay: float, steps: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tensors = {"p": trained("p", size), "g": parameter("g", size), "m": state("m", size), "v": state("v", size)}
    tensors["t"] = STEPS
    node = Node("adam", "adam", ("g", "t"), (), ("p", "m", "v"), attributes={"weight_decay": decay})
    arrays: dict[str, Array] = {name: rng.random(size).astype(np.float32) for name in ("p", "m", "v", "g")}
    arrays["t"] = np.array(steps, np.int32)
    judge({"adam": Twins(library, 1).compare(node, tensors, arrays)})


@compares("count")
@given(steps=st.integers(0, 2**31 - 2))
def test_the_count_of_steps(library: Library, steps: int) -> None:
    node = Node("count", "count", (), (), ("t",))
    judge({"count": Twins(library, 1).compare(node, {"t": STEPS}, {"t": np.array(steps, np.int32)})})


@compares("sgd_linear")
@pytest.mark.parametrize("with_blas", [True, False])
@pytest.mark.parametrize("order", [Order.SAMPLES, Order.INPUTS])
@given(batch=batches, inputs=sizes, outputs=sizes, seed=seeds)
def test_gradients_that_go_straight_into_a_weight(
    library: Library, *, with_blas: bool, order: Order, batch: int, inputs: int, outputs: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    weight = replace(trained("w", outputs, inputs), order=order)
    tensors = {"w": weight, "dy": sample("dy", outputs), "x": sample("x", inputs)}
    node = Node("sgd", "sgd_linear", ("dy", "x"), (), ("w",))
    arrays = {
        name: rng.standard_normal(tensor.full_shape(batch)).astype(np.float32) for name, tensor in tensors.items()
    }
    library.use_blas(library.blas if with_blas else None)
    try:
        judge({"sgd_linear": Twins(library, batch).compare(node, tensors, arrays)})
    finally:
        library.use_blas(library.blas)


def check_convolution(library: Library, case: Case, way: Way, seed: int) -> None:
    twins, arrays = Twins(library, case.samples), drawn(case, "float32", seed)
    judge({"sgd_conv2d": twins.compare(update(case, way), trained_layer(case), arrays)})


@compares("sgd_conv2d")
@given(case=dense(), way=st.sampled_from((Way.TAPS, Way.UNFOLD)), seed=seeds)
def test_gradients_that_go_straight_into_a_convolution(library: Library, case: Case, way: Way, seed: int) -> None:
    check_convolution(library, case, way, seed)


@compares("sgd_conv2d")
@given(case=winograd(), seed=seeds)
def test_transformed_gradients_that_go_straight_into_a_convolution(library: Library, case: Case, seed: int) -> None:
    check_convolution(library, case, Way.WINOGRAD, seed)


@pytest.mark.parametrize(("case", "way"), WIDE, ids=[f"{way.value} {case.weight}" for case, way in WIDE])
def test_gradients_that_go_straight_into_convolutions_of_many_channels(library: Library, case: Case, way: Way) -> None:
    check_convolution(library, case, way, 1)


@compares("sgd_rows")
@given(batch=batches, width=sizes, rows=st.integers(1, 50), seed=seeds)
def test_gradients_that_go_straight_into_rows_of_a_table(
    library: Library, batch: int, width: int, rows: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    tensors = {"table": trained("table", rows, width), "dy": sample("dy", 7, width)}
    tensors["tokens"] = Tensor("tokens", (7,), DType.INT32)
    arrays: dict[str, Array] = {name: rng.standard_normal(tensors[name].full_shape(batch)) for name in ("table", "dy")}
    arrays["tokens"] = rng.integers(0, rows, (batch, 7)).astype(np.int32)
    node = Node("sgd", "sgd_rows", ("dy", "tokens"), (), ("table",))
    judge({"sgd_rows": Twins(library, batch).compare(node, tensors, arrays)})


@compares("update_running_statistics")
@given(channels=sizes, momentum=st.sampled_from((0.1, 0.01)), samples=st.integers(2, 3000), seed=seeds)
def test_running_statistics(library: Library, channels: int, momentum: float, samples: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tensors = {name: trained(name, channels) for name in ("mean", "variance")} | {"own": parameter("own", 2, channels)}
    arrays = {name: rng.random(tensor.shape) for name, tensor in tensors.items()}
    attributes = {"momentum": momentum, "samples": samples}
    node = Node("move", "update_running_statistics", ("own",), (), ("mean", "variance"), attributes=attributes)
    judge({node.op: Twins(library, 1).compare(node, tensors, arrays)})


@compares("update_standardisation")
@given(batch=batches, features=st.integers(1, 600), seen=st.integers(0, 10_000), seed=seeds)
def test_statistics_of_everything_seen(library: Library, batch: int, features: int, seen: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tensors = {name: trained(name, features) for name in ("mean", "variance")} | {"n": trained("n", 1)}
    tensors["x"] = sample("x", features)
    arrays = {name: rng.random(tensor.full_shape(batch)) for name, tensor in tensors.items()}
    arrays["n"][:] = seen
    node = Node("move", "update_standardisation", ("x",), (), ("mean", "variance", "n"))
    judge({node.op: Twins(library, batch).compare(node, tensors, arrays)})
