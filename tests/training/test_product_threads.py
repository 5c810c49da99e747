"""BLAS's threads are for large products: small ones take longer with them, and collapse beside a busy neighbour."""

from collections.abc import Iterator

import numpy as np
import pytest

from hedgerow_agent.core.blas import Blas, find_blas
from hedgerow_agent.core.compilation import NumpyBackend
from hedgerow_agent.core.kernels.call import Call, Runtime
from hedgerow_agent.core.product_threads import LEAST_FLOPS_IN_A_ROW, product_flops, with_threads
from hedgerow_plans.graph.ir import Node, Order
from hedgerow_plans.graph.tiles import UNFOLDED_TILE_ELEMENTS

NOWHERE = np.zeros(0, np.uint8)


@pytest.fixture
def blas() -> Iterator[Blas]:
    found = find_blas()
    assert found is not None, "numpy's wheels bring OpenBLAS along"
    before = found.threads()
    yield found
    found.use_threads(before)


def linear(rows: int, width: int) -> Call:
    node = Node("fc", "linear", ("x", "w"), ("y",))
    x, weight, y = (np.zeros(shape, np.float32) for shape in ((rows, width), (width, width), (rows, width)))
    return Call(node, (x, weight), (y,), (), NOWHERE, Runtime(), flops=2 * rows * width * width)


def convolution(op: str, *shapes: tuple[int, ...], algorithm: str = "unfold", flops: int = 10**9) -> Call:
    node = Node("conv", op, ("a", "b"), ("c",), attributes={"algorithm": algorithm, "groups": 1})
    first, second, made = (np.zeros(shape, np.float32) for shape in shapes)
    orders = (Order.CHANNELS, Order.SAMPLES), (Order.CHANNELS,)
    return Call(node, (first, second), (made,), (), NOWHERE, Runtime(), *orders, flops)


def threads_in(call: Call, blas: Blas) -> int:
    """Run a call and look how many threads there are right after it."""
    seen: list[int] = []
    for run in NumpyBackend().bind([call, lambda: seen.append(blas.threads())], NOWHERE):
        run()
    return seen[0]


def test_only_large_products_get_the_threads_of_the_process(blas: Blas) -> None:
    blas.use_threads(2)
    assert threads_in(linear(64, 1024), blas) == 2
    assert threads_in(linear(64, 64), blas) == 1
    assert blas.threads() == 2  # as whoever set it wants it


def test_a_process_with_one_thread_stays_with_it(blas: Blas) -> None:
    blas.use_threads(1)
    assert threads_in(linear(64, 1024), blas) == 1


def test_a_convolution_in_tiles_is_as_small_as_its_tiles() -> None:
    image, result = (16, 32, 32, 8), (64, 32, 32, 8)
    forward = convolution("conv2d", image, (64, 16, 3, 3), result)
    backward = convolution("conv2d_grad_input", result, (64, 16, 3, 3), image)
    pointwise = convolution("conv2d", image, (64, 16, 1, 1), result)
    by_taps = convolution("conv2d", image, (64, 16, 3, 3), result, algorithm="taps")
    assert product_flops(forward) == 4 * product_flops(backward) == 2 * UNFOLDED_TILE_ELEMENTS * 64
    assert product_flops(forward) < LEAST_FLOPS_IN_A_ROW
    assert product_flops(pointwise) == 10**9
    assert product_flops(by_taps) == 10**9 // 9
    assert product_flops(convolution("conv2d", image, (64, 16, 1, 1), result, algorithm="taps")) == 10**9
    assert product_flops(convolution("conv2d_grad_weight", image, image, (96, 1, 3, 3))) == 0  # a product for each row
    assert product_flops(convolution("conv2d", image, (16, 1, 3, 3), image, algorithm="depthwise")) == 0


def test_a_convolution_needs_larger_products_than_a_single_one(blas: Blas) -> None:
    blas.use_threads(2)
    image = (16, 16, 16, 8)
    assert threads_in(convolution("conv2d", image, (16, 16, 1, 1), image, flops=20_000_000), blas) == 1
    assert threads_in(convolution("conv2d", image, (16, 16, 1, 1), image, flops=80_000_000), blas) == 2
    assert product_flops(linear(64, 400)) < 21_000_000
    assert threads_in(linear(64, 400), blas) == 2


def keeps_its_threads(call: Call, blas: Blas) -> bool:
    return len(list(with_threads([call], [lambda: None], blas, most=2))) == 1


def test_one_position_of_a_window_needs_less_than_unfolded_patches(blas: Blas) -> None:
    image, weight = (256, 4, 4, 8), (256, 256, 3, 3)
    for flops, by_taps in ((50_000_000, False), (150_000_000, True)):
        assert (
            keeps_its_threads(convolution("conv2d", image, weight, image, algorithm="taps", flops=flops), blas)
            is by_taps
        )
        assert not keeps_its_threads(convolution("conv2d", image, weight, image, flops=flops // 4), blas)
