"""Every kernel of the library computes what its numpy twin does, over generated shapes and in every order it takes."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.native.library import Library
from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import Attribute, DType, Node, Order, Tensor
from hedgerow_plans.graph.ops.convolution_ways import Way
from support.convolutions import Case, dense, depthwise, in_orders, weight_order, winograd
from support.gradients import parameter, sample, seeds
from support.native_calls import Twins
from support.twin_tests import compares, compares_each, judge, orders

sizes, batches = st.integers(1, 40), st.integers(1, 5)


def check_convolution(library: Library, case: Case, way: Way, lying: tuple[Order, Order, Order], seed: int) -> None:
    twins, rng = Twins(library, case.samples), np.random.default_rng(seed)
    bias = (parameter("b", case.weight[0]),) if case.bias else ()
    known = {tensor.name: tensor for tensor in (sample("x", *case.image), parameter("w", *case.weight), *bias)}
    attributes = {**case.attributes, "algorithm": way.value}
    forward = Node("y", "conv2d", tuple(known), ("y",), attributes=attributes)
    (y,) = table.infer(forward, known)
    known |= {"y": y, "dy": replace(y, name="dy")}
    nodes = [
        forward,
        Node("dx", "conv2d_grad_input", ("dy", "w"), ("dx",), attributes={**attributes, "shape": case.image}),
        Node("dw", "conv2d_grad_weight", ("dy", "x"), ("dw",), attributes={**attributes, "shape": case.weight}),
    ]
    arrays: dict[str, Array] = {
        name: rng.standard_normal(tensor.full_shape(case.samples)).astype(np.float32) for name, tensor in known.items()
    }
    crossing = lying[0] is not lying[2]  # the gradient of images from outside is never asked for
    for node in (node for node in nodes if not (crossing and node.op == "conv2d_grad_input")):
        (made,) = table.infer(node, known)
        tensors = in_orders({**known, made.name: made}, lying)
        if crossing and table.scratch_bytes(node, tensors, case.samples) < 4 * math.prod(case.weight):
            continue  # too little room to turn the weight in: numpy does it
        judge({node.op: twins.compare(node, tensors, arrays)})


@compares("conv2d", "conv2d_grad_input", "conv2d_grad_weight")
@given(case=dense(), seed=seeds)
def test_convolutions_by_taps(library: Library, case: Case, seed: int) -> None:
    check_convolution(library, case, Way.TAPS, (Order.PIXELS, weight_order(case), Order.PIXELS), seed)


@compares("conv2d", "conv2d_grad_input", "conv2d_grad_weight")
@given(case=dense(), result=st.sampled_from((Order.CHANNELS, Order.PIXELS)), seed=seeds)
def test_convolutions_by_channels(library: Library, case: Case, result: Order, seed: int) -> None:
    check_convolution(library, case, Way.UNFOLD, (Order.CHANNELS, Order.SAMPLES, result), seed)


@compares("conv2d", "conv2d_grad_input", "conv2d_grad_weight")
@given(case=depthwise(), seed=seeds)
def test_depthwise_convolutions(library: Library, case: Case, seed: int) -> None:
    check_convolution(library, case, Way.DEPTHWISE, (Order.PIXELS, Order.SAMPLES, Order.PIXELS), seed)


@compares("conv2d", "conv2d_grad_input", "conv2d_grad_weight")
@given(case=winograd(), seed=seeds)
def test_winograd(library: Library, case: Case, seed: int) -> None:
    check_convolution(library, case, Way.WINOGRAD, (Order.PIXELS, Order.TAPS, Order.PIXELS), seed)


WIDE = [
    (Case((40, 14, 14), (70, 40, 3, 3), {"padding": 1}, 8), Way.TAPS, Order.TAPS),
    (Case((64, 8, 8), (48, 64, 3, 3), {"padding": 1}, 8), Way.WINOGRAD, Order.TAPS),
    (Case((24, 13, 11), (24, 1, 3, 3), {"stride": 2, "padding": 1, "groups": 24}, 8), Way.DEPTHWISE, Order.SAMPLES),
    (Case((300, 4, 4), (36, 300, 1, 1), {}, 3), Way.UNFOLD, Order.SAMPLES),
]


@pytest.mark.parametrize(("case", "way", "weight"), WIDE, ids=[way.value for _, way, _ in WIDE])
def test_layers_that_fill_whole_vectors_and_panels(library: Library, case: Case, way: Way, weight: Order) -> None:
    check_convolution(library, case, way, (Order.PIXELS, weight, Order.PIXELS), 1)


@pytest.mark.parametrize("result", [Order.CHANNELS, Order.PIXELS])
@pytest.mark.parametrize("stride", [1, 2])
def test_layers_by_channels_that_take_several_panels(library: Library, result: Order, stride: int) -> None:
    case = Case((70, 9, 10), (21, 70, 3, 3), {"padding": 1, "stride": stride}, 6, bias=True)
    check_convolution(library, case, Way.UNFOLD, (Order.CHANNELS, Order.SAMPLES, result), 1)


@compares("linear", "linear_grad_input", "linear_grad_weight", "bias_grad")
@pytest.mark.parametrize("order", [Order.SAMPLES, Order.INPUTS])
@given(batch=batches, inputs=sizes, outputs=sizes, bias=st.booleans(), seed=seeds)
def test_fully_connected_layers(
    library: Library, *, order: Order, batch: int, inputs: int, outputs: int, bias: bool, seed: int
) -> None:
    tensors = (sample("x", 3, inputs), parameter("w", outputs, inputs), *([parameter("b", outputs)] if bias else []))
    node = Node("y", "linear", tuple(tensor.name for tensor in tensors), ("y",))
    found = Twins(library, batch).check(node, tensors, seed, {}, order)
    assert {"linear", "linear_grad_input", "linear_grad_weight"} <= found.keys()
    judge(found)


@pytest.mark.parametrize("with_blas", [True, False])
@pytest.mark.parametrize("shape", [(5, 700, 40), (33, 64, 17), (130, 520, 65)])
def test_large_products_by_blas_and_by_our_own(library: Library, with_blas: bool, shape: tuple[int, int, int]) -> None:
    batch, inputs, outputs = shape
    assert library.blas is not None
    library.use_blas(library.blas if with_blas else None)
    try:
        tensors = (sample("x", inputs), parameter("w", outputs, inputs), parameter("b", outputs))
        judge(Twins(library, batch).check(Node("y", "linear", ("x", "w", "b"), ("y",)), tensors, 1, {}, Order.SAMPLES))
    finally:
        library.use_blas(library.blas)


@compares_each(
    relu=("relu_grad",),
    relu6=("relu_grad",),
    sigmoid=("sigmoid_grad",),
    tanh=("tanh_grad",),
    silu=("silu_grad",),
    hswish=("hswish_grad",),
    gelu=("mul",),
)
@given(batch=batches, channels=sizes, side=st.integers(1, 7), order=orders, saved=st.booleans(), seed=seeds)
def test_activations(
    library: Library, op: str, *, batch: int, channels: int, side: int, order: Order, saved: bool, seed: int
) -> None:
    x = sample("x", channels, side, side)
    rectifier, both = op.startswith("relu"), saved and op in ("relu", "relu6", "gelu")
    node = Node("y", op, ("x",), ("y", "saved") if both else ("y",))
    given_x = {"x": 4 * np.random.default_rng(seed).standard_normal((batch, *x.shape)).astype(np.float32)}
    lying = order if rectifier else Order.SAMPLES
    if op in ("relu", "relu6", "gelu") and not both:  # their gradients read what was saved
        made = replace(sample("y", *x.shape), order=lying)
        judge({op: Twins(library, batch).compare(node, {"x": replace(x, order=lying), "y": made}, given_x)})
        return
    judge(Twins(library, batch).check(node, (x,), seed, given_x, lying))


@compares_each(add=("scale",), mul=("mul",))
@given(batch=batches, channels=sizes, order=orders, seed=seeds)
def test_sums_and_products_of_images(
    library: Library, op: str, *, batch: int, channels: int, order: Order, seed: int
) -> None:
    tensors = (sample("a", channels, 5, 3), sample("b", channels, 5, 3))
    node = Node("y", op, ("a", "b"), ("y",), attributes={"scale": -0.75} if op == "add" else {})
    judge(Twins(library, batch).check(node, tensors, seed, {}, order if op == "add" else Order.SAMPLES))


@compares("batch_norm", "batch_norm_grad_input", "batch_norm_grad_weight")
@given(batch=batches, channels=sizes, side=st.integers(2, 9), own=st.booleans(), seed=seeds)
def test_batch_norm_by_pixels(library: Library, *, batch: int, channels: int, side: int, own: bool, seed: int) -> None:
    names = ("weight", "bias") if own else ("weight", "bias", "mean", "variance")
    tensors = (sample("x", channels, side, side), *(parameter(name, channels) for name in names))
    outputs = ("y", "saved") if own else ("y",)
    node = Node("y", "batch_norm", ("x", *names), outputs, attributes={"statistics": "batch" if own else "running"})
    drawn = np.random.default_rng(seed)
    given_ones = {"variance": drawn.random(channels).astype(np.float32) + 0.5}
    judge(Twins(library, batch).check(node, tensors, seed, {} if own else given_ones, Order.PIXELS))


@compares("bias_grad")
@given(batch=batches, channels=sizes, side=st.integers(2, 9), order=orders, seed=seeds)
def test_gradients_of_biases_of_images(
    library: Library, *, batch: int, channels: int, side: int, order: Order, seed: int
) -> None:
    twins, dy = Twins(library, batch), replace(sample("dy", channels, side, side), order=order)
    node = Node("db", "bias_grad", ("dy",), ("db",))
    array = np.random.default_rng(seed).standard_normal((batch, channels, side, side)).astype(np.float32)
    judge({"bias_grad": twins.compare(node, {"dy": dy}, {"dy": array})})


@compares_each(
    layer_norm=("layer_norm_grad_input", "layer_norm_grad_weight", "layer_norm_grad_bias"),
    rms_norm=("rms_norm_grad_input", "rms_norm_grad_weight"),
)
@given(batch=batches, width=st.integers(2, 70), saved=st.booleans(), seed=seeds)
def test_norms_over_rows(library: Library, op: str, *, batch: int, width: int, saved: bool, seed: int) -> None:
    names = ("weight", "bias") if op == "layer_norm" else ("weight",)
    tensors = (sample("x", 6, width), *(parameter(name, width) for name in names))
    node = Node("y", op, ("x", *names), ("y", "saved"))
    judge(Twins(library, batch).check(node, tensors, seed, {}, Order.SAMPLES))


@compares("softmax", "softmax_grad")
@given(batch=batches, width=sizes, seed=seeds)
def test_softmax(library: Library, batch: int, width: int, seed: int) -> None:
    node = Node("y", "softmax", ("x",), ("y",))
    judge(Twins(library, batch).check(node, (sample("x", 3, width),), seed, {}, Order.SAMPLES))


@compares("multi_head_attention", "attention_grad_scores", "attention_grad_values")
@given(
    batch=batches,
    heads=st.integers(1, 3),
    width=st.integers(1, 9),
    queries=st.integers(1, 20),
    keys=st.integers(1, 20),
    seed=seeds,
)
def test_attention(library: Library, *, batch: int, heads: int, width: int, queries: int, keys: int, seed: int) -> None:
    tensors = (sample("q", queries, heads * width), sample("k", keys, heads * width), sample("v", keys, heads * width))
    node = Node("y", "multi_head_attention", ("q", "k", "v"), ("y", "saved"), attributes={"heads": heads})
    judge(Twins(library, batch).check(node, tensors, seed, {}, Order.SAMPLES))


@compares_each(max_pool2d=("max_pool2d_grad",), avg_pool2d=("avg_pool2d_grad",))
@given(case=dense(), order=orders, seed=seeds)
def test_pooling(library: Library, op: str, case: Case, order: Order, seed: int) -> None:
    kernel, padding = case.weight[2:], (case.weight[2] // 2, case.weight[3] // 2)
    fits = all(side + 2 * pad >= size for side, pad, size in zip(case.image[1:], padding, kernel, strict=True))
    if not fits:
        kernel, padding = (1, 1), (0, 0)
    outputs = ("y", "saved") if op == "max_pool2d" else ("y",)
    attributes: dict[str, Attribute] = {"kernel": kernel, "padding": padding, "stride": case.attributes["stride"]}
    node = Node("y", op, ("x",), outputs, attributes=attributes)
    allowed = order if op == "max_pool2d" else Order.SAMPLES
    judge(Twins(library, case.samples).check(node, (sample("x", *case.image),), seed, {}, allowed))


@compares("global_avg_pool", "global_avg_pool_grad")
@given(batch=batches, channels=sizes, side=st.integers(1, 9), order=orders, seed=seeds)
def test_means_of_whole_channels(
    library: Library, *, batch: int, channels: int, side: int, order: Order, seed: int
) -> None:
    node = Node("y", "global_avg_pool", ("x",), ("y",))
    judge(Twins(library, batch).check(node, (sample("x", channels, side, side),), seed, {}, order))


@compares("cross_entropy", "cross_entropy_grad")
@given(batch=batches, classes=st.integers(2, 40), seed=seeds)
def test_cross_entropy(library: Library, batch: int, classes: int, seed: int) -> None:
    labels = Tensor("labels", (), DType.INT32)
    node = Node("y", "cross_entropy", ("x", "labels"), ("y", "saved"))
    chosen = {"labels": np.random.default_rng(seed).integers(0, classes, batch).astype(np.int32)}
    judge(Twins(library, batch).check(node, (sample("x", classes), labels), seed, chosen, Order.SAMPLES))


@compares("embedding", "embedding_grad")
@given(batch=batches, width=sizes, rows=st.integers(1, 50), seed=seeds)
def test_tables_that_tokens_choose_from(library: Library, batch: int, width: int, rows: int, seed: int) -> None:
    tokens = Tensor("tokens", (7,), DType.INT32)
    node = Node("y", "embedding", ("tokens", "table"), ("y",))
    chosen = {"tokens": np.random.default_rng(seed).integers(0, rows, (batch, 7)).astype(np.int32)}
    judge(Twins(library, batch).check(node, (tokens, parameter("table", rows, width)), seed, chosen, Order.SAMPLES))
