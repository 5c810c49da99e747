"""Every operator's gradient against finite differences in 64 bits, by the table's own backward rules."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import Attribute, DType, Node, Tensor
from support.gradients import batches, check_gradients, parameter, sample, seeds, slope
from support.kernel_calls import Laboratory, gradient_node


@given(batches, st.integers(1, 9), st.integers(1, 9), st.booleans(), seeds)
def test_linear(micro_batch: int, features: int, outputs: int, biased: bool, seed: int) -> None:
    inputs = (sample("x", features), parameter("w", outputs, features), parameter("b", outputs))[: 3 if biased else 2]
    node = Node("n", "linear", tuple(tensor.name for tensor in inputs), ("y",))
    check_gradients(node, inputs, micro_batch, seed)


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[Node, tuple[Tensor, ...]]:
    groups = draw(st.integers(1, 3))
    channels, outputs = groups * draw(st.integers(1, 3)), groups * draw(st.integers(1, 3))
    kernel = (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    stride, padding = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    high, wide = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    assume(high + 2 * padding >= kernel[0] and wide + 2 * padding >= kernel[1])
    inputs = (
        sample("x", channels, high, wide),
        parameter("w", outputs, channels // groups, *kernel),
        parameter("b", outputs),
    )[: draw(st.integers(2, 3))]
    attributes: dict[str, Attribute] = {"stride": stride, "padding": padding, "groups": groups}
    return Node("n", "conv2d", tuple(tensor.name for tensor in inputs), ("y",), attributes=attributes), inputs


@settings(max_examples=150)
@given(convolutions(), batches, seeds)
def test_conv2d(convolution: tuple[Node, tuple[Tensor, ...]], micro_batch: int, seed: int) -> None:
    check_gradients(*convolution, micro_batch, seed)


@pytest.mark.parametrize("padding", [0, 1])
def test_conv2d_in_several_tiles(padding: int) -> None:
    inputs = (sample("x", 16, 16, 16), parameter("w", 4, 16, 3, 3))
    node = Node("n", "conv2d", ("x", "w"), ("y",), attributes={"padding": padding})
    check_gradients(node, inputs, 4, 0)


@given(batches, st.integers(1, 40), seeds)
def test_relu(micro_batch: int, elements: int, seed: int) -> None:
    check_gradients(Node("n", "relu", ("x",), ("y", "mask")), (sample("x", elements),), micro_batch, seed)


def test_relu_of_a_sample_larger_than_a_tile() -> None:
    check_gradients(Node("n", "relu", ("x",), ("y", "mask")), (sample("x", 3, 65_537),), 2, 0)


@given(batches, st.integers(1, 3), st.tuples(st.integers(1, 4), st.integers(1, 4)), st.integers(4, 9), seeds)
def test_max_pool2d(micro_batch: int, channels: int, window: tuple[int, int], size: int, seed: int) -> None:
    kernel, stride = window
    node = Node("n", "max_pool2d", ("x",), ("y", "index"), attributes={"kernel": kernel, "stride": stride})
    check_gradients(node, (sample("x", channels, size, size + 1),), micro_batch, seed)


@given(batches, st.integers(1, 9), st.sampled_from([1.0, 0.25, -2.0]), seeds)
def test_add_and_scale(micro_batch: int, elements: int, scale: float, seed: int) -> None:
    inputs = (sample("a", elements), sample("b", elements))
    check_gradients(Node("n", "add", ("a", "b"), ("y",), attributes={"scale": scale}), inputs, micro_batch, seed)
    check_gradients(Node("n", "scale", ("a",), ("y",), attributes={"scale": scale}), inputs[:1], micro_batch, seed)


@given(batches, st.integers(1, 4), st.integers(1, 4), seeds)
def test_reshape(micro_batch: int, rows: int, columns: int, seed: int) -> None:
    node = Node("n", "reshape", ("x",), ("y",), attributes={"shape": (rows * columns,)})
    check_gradients(node, (sample("x", rows, columns),), micro_batch, seed)


@given(batches, st.integers(2, 9), st.integers(1, 8), seeds)
def test_cross_entropy(micro_batch: int, classes: int, batch_size: int, seed: int) -> None:
    """The gradient is that of the sum of losses divided by the whole batch."""
    lab, rng = Laboratory(micro_batch), np.random.default_rng(seed)
    logits, labels = sample("x", classes), Tensor("labels", (), DType.INT32)
    node = Node("n", "cross_entropy", ("x", "labels"), ("losses", "p"))
    tensors = {tensor.name: tensor for tensor in (logits, labels)}
    tensors.update({tensor.name: tensor for tensor in table.infer(node, tensors)})
    arrays: dict[str, Array] = {
        "x": 3 * rng.standard_normal((micro_batch, classes)),
        "labels": rng.integers(0, classes, micro_batch, dtype=np.int32),
        "dy": np.full(micro_batch, 1 / batch_size),
    }
    outputs = lab.run(node, tensors, arrays)
    backward = gradient_node(node, tensors, 0, batch_size)
    assert backward is not None
    found = lab.run(backward, tensors, {**arrays, **outputs})["result"]
    direction = rng.standard_normal(found.shape)
    wanted = slope(lab, node, tensors, arrays, ("x", direction))
    assert math.isclose(float((found * direction).sum()), wanted, rel_tol=1e-6, abs_tol=1e-7)
    without = lab.run(Node("n", "cross_entropy", ("x", "labels"), ("losses",)), tensors, arrays)
    assert np.array_equal(without["losses"], outputs["losses"])
