"""Every way to compute a convolution, in every order of its tensors, gives what unfolding sample by sample gives."""

import math
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import Node, Order
from hedgerow_plans.graph.ops.convolution_ways import Way
from hedgerow_plans.graph.tiles import SMALL_WEIGHT_ELEMENTS, UNFOLDED_TILE_ELEMENTS
from support.convolutions import Case, dense, depthwise, in_orders, weight_order, winograd
from support.gradients import parameter, sample, seeds
from support.kernel_calls import Laboratory


def check(case: Case, way: Way, orders: tuple[Order, Order, Order], seed: int) -> None:
    """Compare the convolution and both gradients; `orders` are those of image, weight and result."""
    lab, rng = Laboratory(case.samples), np.random.default_rng(seed)
    bias = (parameter("b", case.weight[0]),) if case.bias else ()
    known = {tensor.name: tensor for tensor in (sample("x", *case.image), parameter("w", *case.weight), *bias)}
    forward = Node("y", "conv2d", tuple(known), ("y",), attributes=case.attributes)
    (y,) = table.infer(forward, known)
    known |= {"y": y, "dy": replace(y, name="dy")}
    nodes = [
        forward,
        Node("dx", "conv2d_grad_input", ("dy", "w"), ("dx",), attributes={**case.attributes, "shape": case.image}),
        Node("dw", "conv2d_grad_weight", ("dy", "x"), ("dw",), attributes={**case.attributes, "shape": case.weight}),
    ]
    arrays: dict[str, Array] = {
        name: rng.standard_normal(tensor.full_shape(case.samples)) for name, tensor in known.items()
    }
    for node in nodes:
        (made,) = table.infer(node, known)
        wanted = lab.run(node, {**known, made.name: made}, arrays)[made.name]
        lying = in_orders({**known, made.name: made}, orders)
        other = replace(node, attributes={**node.attributes, "algorithm": way.value})
        table.check_orders(other, lying)
        found = lab.run(other, lying, arrays)[made.name]
        assert np.allclose(found, wanted, rtol=1e-10, atol=1e-10), node.op
        reached, promised = lab.scratch_reached[node.name]
        assert reached == promised


@given(dense(), seeds)
def test_taps(case: Case, seed: int) -> None:
    check(case, Way.TAPS, (Order.PIXELS, weight_order(case), Order.PIXELS), seed)


@given(dense(), seeds)
def test_unfolding_by_pixels(case: Case, seed: int) -> None:
    check(case, Way.UNFOLD, (Order.PIXELS, weight_order(case), Order.PIXELS), seed)


@given(dense(), st.sampled_from((Order.CHANNELS, Order.PIXELS)), seeds)
def test_unfolding_by_channels(case: Case, result: Order, seed: int) -> None:
    check(case, Way.UNFOLD, (Order.CHANNELS, Order.SAMPLES, result), seed)


@given(depthwise(), seeds)
def test_depthwise(case: Case, seed: int) -> None:
    check(case, Way.DEPTHWISE, (Order.PIXELS, Order.SAMPLES, Order.PIXELS), seed)


@given(winograd(), seeds)
def test_winograd(case: Case, seed: int) -> None:
    check(case, Way.WINOGRAD, (Order.PIXELS, Order.TAPS, Order.PIXELS), seed)


def test_layers_that_take_several_tiles() -> None:
    large = Case((40, 30, 30), (12, 40, 3, 3), {"stride": 2, "padding": 1}, 9)
    entry = Case((3, 64, 62), (16, 3, 3, 3), {"padding": 1}, 9)
    assert elements_of_patches(large, 15 * 15) > 2 * UNFOLDED_TILE_ELEMENTS
    assert elements_of_patches(entry, 64 * 62) > 2 * UNFOLDED_TILE_ELEMENTS
    for case in (large, entry):
        check(case, Way.UNFOLD, (Order.PIXELS, Order.TAPS, Order.PIXELS), 1)
        check(case, Way.UNFOLD, (Order.CHANNELS, Order.SAMPLES, Order.CHANNELS), 1)
        check(case, Way.UNFOLD, (Order.CHANNELS, Order.SAMPLES, Order.PIXELS), 1)
    channel_by_channel = Case((40, 30, 30), (40, 1, 3, 3), {"stride": 2, "padding": 1, "groups": 40}, 6)
    check(channel_by_channel, Way.DEPTHWISE, (Order.PIXELS, Order.SAMPLES, Order.PIXELS), 1)


def test_layers_of_many_weights_and_few_pixels() -> None:
    case = Case((40, 6, 5), (12, 40, 3, 3), {"padding": 1}, 2)
    assert elements_of_patches(case, 6 * 5) < UNFOLDED_TILE_ELEMENTS
    assert math.prod(case.weight) > SMALL_WEIGHT_ELEMENTS
    for result in (Order.CHANNELS, Order.PIXELS):
        check(case, Way.UNFOLD, (Order.CHANNELS, Order.SAMPLES, result), 1)


def elements_of_patches(case: Case, pixels: int) -> int:
    return case.samples * pixels * math.prod(case.weight[1:])
