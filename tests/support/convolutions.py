"""Convolutions of all shapes, for whoever compares two ways to compute them."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import Attribute, Node, Order, Tensor
from hedgerow_plans.graph.ops.convolution_ways import Way
from support.gradients import sample
from support.twin_tests import trained


@dataclass(frozen=True)
class Case:
    """A convolution: its shapes and attributes."""

    image: tuple[int, int, int]
    weight: tuple[int, int, int, int]
    attributes: dict[str, Attribute]
    samples: int
    bias: bool = False


sides, channels = st.integers(1, 9), st.integers(1, 5)


@st.composite
def dense(draw: st.DrawFn) -> Case:
    inputs, outputs, kernel = draw(channels), draw(channels), (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    padding, stride = (draw(st.integers(0, 3)), draw(st.integers(0, 3))), (draw(channels), draw(channels))
    image = (inputs, draw(sides), draw(sides))
    assume(all(side + 2 * pad >= size for side, pad, size in zip(image[1:], padding, kernel, strict=True)))
    attributes: dict[str, Attribute] = {"stride": stride, "padding": padding}
    return Case(image, (outputs, inputs, *kernel), attributes, draw(st.integers(1, 4)), draw(st.booleans()))


@st.composite
def depthwise(draw: st.DrawFn) -> Case:
    case = draw(dense())
    count = case.image[0]
    return replace(case, weight=(count, 1, *case.weight[2:]), attributes={**case.attributes, "groups": count})


@st.composite
def grouped(draw: st.DrawFn) -> Case:
    case, groups = draw(dense()), draw(st.integers(2, 3))
    inputs, outputs = case.image[0], case.weight[0]
    weight = (groups * outputs, inputs, *case.weight[2:])
    image = (groups * inputs, *case.image[1:])
    return replace(case, image=image, weight=weight, attributes={**case.attributes, "groups": groups})


@st.composite
def pointwise(draw: st.DrawFn) -> Case:
    case, groups = draw(dense()), draw(st.integers(1, 3))
    inputs, outputs = draw(st.integers(1, 20)), draw(st.integers(1, 20))
    image, weight = (groups * inputs, *case.image[1:]), (groups * outputs, inputs, 1, 1)
    return replace(case, image=image, weight=weight, attributes={"groups": groups})


@st.composite
def winograd(draw: st.DrawFn) -> Case:
    inputs, outputs = draw(channels), draw(channels)
    image = (inputs, 2 * draw(st.integers(1, 4)), 2 * draw(st.integers(1, 4)))
    return Case(image, (outputs, inputs, 3, 3), {"padding": 1}, draw(st.integers(1, 4)), draw(st.booleans()))


def in_orders(tensors: dict[str, Tensor], orders: tuple[Order, Order, Order]) -> dict[str, Tensor]:
    image, weight, result = orders
    wanted = {"x": image, "dx": image, "w": weight, "dw": weight, "y": result, "dy": result}
    return {name: replace(tensor, order=wanted.get(name, Order.SAMPLES)) for name, tensor in tensors.items()}


def trained_layer(case: Case) -> dict[str, Tensor]:
    """Return images and gradient by pixels, and a weight as products of them lie, for an update by plain SGD."""
    known = {"x": sample("x", *case.image), "w": trained("w", *case.weight)}
    (made,) = table.infer(Node("y", "conv2d", ("x", "w"), ("dy",), attributes=case.attributes), known)
    return in_orders({**known, "dy": made}, (Order.PIXELS, weight_order(case), Order.PIXELS))


def update(case: Case, way: Way) -> Node:
    return Node("sgd", "sgd_conv2d", ("dy", "x"), (), ("w",), {**case.attributes, "algorithm": way.value})


def drawn(case: Case, dtype: str, seed: int) -> dict[str, Array]:
    """Draw what a trained layer reads and changes."""
    rng = np.random.default_rng(seed)
    shapes = {name: tensor.full_shape(case.samples) for name, tensor in trained_layer(case).items()}
    return {name: rng.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}


def weight_order(case: Case) -> Order:
    return Order.SAMPLES if case.weight[2:] == (1, 1) else Order.TAPS
