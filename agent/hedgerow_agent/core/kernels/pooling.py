"""Kernels of max pooling: the forward walks the window's positions, the backward needs only which of them won."""

import numpy as np

from hedgerow_agent.core.kernels.call import Array, Bound, Call, ScratchCutter
from hedgerow_agent.core.kernels.windows import find_taps
from hedgerow_plans.graph.tiles import BYTE_TILE_ELEMENTS, images_per_tile


def _views_of_taps(call: Call, image: Array, pooled: Array) -> list[Array]:
    kernel = call.integer("kernel", 2)
    stride = call.integer("stride", kernel)
    taps = find_taps(image.shape[2:], pooled.shape[2:], (kernel, kernel), stride, 0)
    return [image[:, :, tap.image[0], tap.image[1]] for tap in taps]


def _byte_tile(call: Call, pooled: Array) -> tuple[int, Array]:
    tile = images_per_tile(len(pooled), pooled[0].size, BYTE_TILE_ELEMENTS)
    return tile, ScratchCutter(call).take((tile, *pooled.shape[1:]), np.bool_)


def bind_max_pool2d(call: Call) -> Bound:
    """Return the largest value of each window and, if asked for, its position (the first one, if several are equal)."""
    (source,), output = call.inputs, call.outputs[0]
    views = _views_of_taps(call, source, output)

    def find_largest() -> None:
        np.copyto(output, views[0])
        for view in views[1:]:
            np.maximum(output, view, out=output)

    if len(call.outputs) == 1:
        return find_largest
    index = call.outputs[1]
    tile, equal = _byte_tile(call, output)

    def run() -> None:
        find_largest()
        index.fill(0)
        for first in range(0, len(output), tile):
            images = slice(first, first + tile)
            for position in range(len(views) - 1, -1, -1):
                np.equal(views[position][images], output[images], out=equal)
                np.copyto(index[images], np.uint8(position), where=equal)

    return run


def bind_max_pool2d_grad(call: Call) -> Bound:
    """Hand each gradient to the pixel that won its window."""
    (gradient, index), (output,) = call.inputs, call.outputs
    views = _views_of_taps(call, output, gradient)
    tile, won = _byte_tile(call, gradient)
    overlapping = call.integer("stride", call.integer("kernel", 2)) < call.integer("kernel", 2)

    def hand_over(position: int, images: slice) -> None:
        np.equal(index[images], np.uint8(position), out=won)
        target = views[position][images]
        if overlapping:
            np.add(target, gradient[images], out=target, where=won)
        else:
            np.multiply(gradient[images], won, out=target)

    def run() -> None:
        output.fill(0)
        for first in range(0, len(output), tile):
            for position in range(len(views)):
                hand_over(position, slice(first, first + tile))

    return run


KERNELS = {"max_pool2d": bind_max_pool2d, "max_pool2d_grad": bind_max_pool2d_grad}
