"""Gradients of layers whose windows, sizes and axes vary, against finite differences in 64 bits."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hedgerow_plans.graph.ir import Attribute, DType, Node, Tensor
from support.gradients import batches, check_gradients, parameter, sample, seeds

sides = st.integers(1, 9)
few = st.integers(1, 4)
pairs = st.tuples(few, few)


@given(batches, st.tuples(st.integers(1, 5), few, few), st.booleans(), seeds)
def test_linear_of_sequences(micro_batch: int, sizes: tuple[int, int, int], biased: bool, seed: int) -> None:
    tokens, width, outputs = sizes
    inputs = (sample("x", tokens, width), parameter("w", outputs, width), parameter("b", outputs))[: 2 + biased]
    node = Node("n", "linear", tuple(tensor.name for tensor in inputs), ("y",))
    check_gradients(node, inputs, micro_batch, seed)


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[Node, tuple[Tensor, ...]]:
    """Draw convolutions with kernels, strides and paddings that differ by axis, depthwise ones among them."""
    channels, multiplier = draw(st.integers(1, 5)), draw(st.integers(1, 2))
    groups = draw(st.sampled_from([count for count in range(1, channels + 1) if channels % count == 0]))
    kernel, stride = draw(pairs), draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    padding = draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))
    high, wide = draw(sides), draw(sides)
    assume(high + 2 * padding[0] >= kernel[0] and wide + 2 * padding[1] >= kernel[1])
    inputs = (
        sample("x", channels, high, wide),
        parameter("w", groups * multiplier, channels // groups, *kernel),
        parameter("b", groups * multiplier),
    )
    attributes: dict[str, Attribute] = {"stride": stride, "padding": padding, "groups": groups}
    return Node("n", "conv2d", ("x", "w", "b"), ("y",), attributes=attributes), inputs


@settings(max_examples=150)
@given(convolutions(), batches, seeds)
def test_conv2d_by_axis(convolution: tuple[Node, tuple[Tensor, ...]], micro_batch: int, seed: int) -> None:
    check_gradients(*convolution, micro_batch, seed)


@pytest.mark.parametrize("stride", [1, 2])
def test_depthwise_conv2d_in_several_tiles(stride: int) -> None:
    inputs = (sample("x", 24, 12, 12), parameter("w", 24, 1, 5, 5))
    node = Node("n", "conv2d", ("x", "w"), ("y",), attributes={"groups": 24, "stride": stride, "padding": 2})
    check_gradients(node, inputs, 3, 0)


@st.composite
def pools(draw: st.DrawFn) -> tuple[dict[str, Attribute], Tensor]:
    """Draw windows that overlap, leave gaps, reach over the edge and begin in the last row."""
    kernel, stride = draw(pairs), draw(pairs)
    padding = (draw(st.integers(0, kernel[0] // 2)), draw(st.integers(0, kernel[1] // 2)))
    high, wide = draw(sides), draw(sides)
    assume(high + 2 * padding[0] >= kernel[0] and wide + 2 * padding[1] >= kernel[1])
    rounding = draw(st.sampled_from(["down", "up"]))
    attributes: dict[str, Attribute] = {"kernel": kernel, "stride": stride, "padding": padding, "rounding": rounding}
    return attributes, sample("x", draw(st.integers(1, 3)), high, wide)


@given(pools(), batches, seeds)
def test_max_pool2d_by_axis(pool: tuple[dict[str, Attribute], Tensor], micro_batch: int, seed: int) -> None:
    attributes, x = pool
    check_gradients(Node("n", "max_pool2d", ("x",), ("y", "index"), (), attributes), (x,), micro_batch, seed)


@given(pools(), batches, seeds)
def test_avg_pool2d(pool: tuple[dict[str, Attribute], Tensor], micro_batch: int, seed: int) -> None:
    attributes, x = pool
    check_gradients(Node("n", "avg_pool2d", ("x",), ("y",), (), attributes), (x,), micro_batch, seed)


@given(batches, few, sides, sides, seeds)
def test_global_avg_pool(micro_batch: int, channels: int, high: int, wide: int, seed: int) -> None:
    node = Node("n", "global_avg_pool", ("x",), ("y",))
    check_gradients(node, (sample("x", channels, high, wide),), micro_batch, seed)


@given(batches, st.tuples(few, sides, sides), st.tuples(sides, sides), st.sampled_from(["halved", "aligned"]), seeds)
def test_upsample_bilinear(
    micro_batch: int, old: tuple[int, int, int], new: tuple[int, int], corners: str, seed: int
) -> None:
    node = Node("n", "upsample_bilinear", ("x",), ("y",), attributes={"size": new, "corners": corners})
    check_gradients(node, (sample("x", *old),), micro_batch, seed)


def test_upsample_bilinear_in_several_tiles() -> None:
    node = Node("n", "upsample_bilinear", ("x",), ("y",), attributes={"size": (40, 50)})
    check_gradients(node, (sample("x", 8, 20, 25),), 6, 0)


@given(batches, st.integers(1, 5), st.integers(1, 7), few, seeds)
def test_embedding(micro_batch: int, tokens: int, rows: int, width: int, seed: int) -> None:
    chosen = np.random.default_rng(seed).integers(0, rows, (micro_batch, tokens), dtype=np.int32)
    inputs = (Tensor("t", (tokens,), dtype=DType.INT32), parameter("w", rows, width))
    check_gradients(Node("n", "embedding", ("t", "w"), ("y",)), inputs, micro_batch, seed, {"t": chosen})


@given(batches, st.lists(few, min_size=1, max_size=4), st.integers(0, 4), seeds)
def test_add_parameter(micro_batch: int, shape: list[int], dropped: int, seed: int) -> None:
    inputs = (sample("x", *shape), parameter("p", *shape[dropped:]))
    check_gradients(Node("n", "add_parameter", ("x", "p"), ("y",)), inputs, micro_batch, seed)
