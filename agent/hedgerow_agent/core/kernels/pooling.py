"""Kernels of pooling: they walk the positions of the window, each of which is a rectangle of the image.

The backward of a maximum needs only which position won; that of a mean needs nothing. Where windows overlap or reach
over the edge, contributions are added; elsewhere they are written.
"""

from dataclasses import dataclass

import numpy as np

from hedgerow_agent.core.kernels.by_pixels import pooling as by_pixels
from hedgerow_agent.core.kernels.call import Array, Bound, Call, ScratchCutter, stored
from hedgerow_agent.core.kernels.ones import ones
from hedgerow_plans.graph.ir import Order
from hedgerow_plans.graph.tiles import BYTE_TILE_ELEMENTS, images_per_tile
from hedgerow_plans.graph.windows import find_taps


@dataclass(frozen=True, slots=True)
class _Meeting:
    """One position of the window: its number, its pixels, and the windows that have a pixel there."""

    position: int
    pixels: Array
    windows: tuple[slice, ...]  # of a pooled image


def _meetings(call: Call, image: Array, pooled: Array) -> list[_Meeting]:
    kernel = call.pair("kernel", 2)
    taps = find_taps(image.shape[2:], pooled.shape[2:], kernel, call.pair("stride", 1), call.pair("padding", 0))
    everything = slice(None)
    return [
        _Meeting(
            tap.row * kernel[1] + tap.column,
            image[:, :, tap.image[0], tap.image[1]],
            (everything, everything, *tap.output),
        )
        for tap in taps
    ]


def _byte_tile(pooled: Array, scratch: ScratchCutter) -> tuple[int, Array]:
    tile = images_per_tile(len(pooled), pooled[0].size, BYTE_TILE_ELEMENTS)
    return tile, scratch.take((tile, *pooled.shape[1:]), np.bool_)


def bind_max_pool2d(call: Call) -> Bound:
    """Return the largest value of each window and, if asked for, its position (the first one, if several are equal)."""
    if call.order is not Order.SAMPLES:
        return by_pixels.bind_max(call)
    (source,), output = call.inputs, call.outputs[0]
    meetings = _meetings(call, source, output)

    def find_largest() -> None:
        output.fill(-np.inf)
        for meeting in meetings:
            target = output[meeting.windows]
            np.maximum(target, meeting.pixels, out=target)

    if len(call.outputs) == 1:
        return find_largest
    index = call.outputs[1]
    tile, buffer = _byte_tile(output, ScratchCutter(call))

    def run() -> None:
        find_largest()
        index.fill(0)
        for first in range(0, len(output), tile):
            images = slice(first, first + tile)
            for meeting in reversed(meetings):
                equal = buffer[meeting.windows]
                np.equal(meeting.pixels[images], output[images][meeting.windows], out=equal)
                np.copyto(index[images][meeting.windows], np.uint8(meeting.position), where=equal)

    return run


def bind_max_pool2d_grad(call: Call) -> Bound:
    """Hand each gradient to the pixel that won its window."""
    if call.order is not Order.SAMPLES:
        return by_pixels.bind_max_grad(call)
    (gradient, index), (output,) = call.inputs, call.outputs
    meetings = _meetings(call, output, gradient)
    tile, buffer = _byte_tile(gradient, ScratchCutter(call))
    overlapping = _overlapping(call)

    def hand_over(meeting: _Meeting, images: slice) -> None:
        won, target = buffer[meeting.windows], meeting.pixels[images]
        np.equal(index[images][meeting.windows], np.uint8(meeting.position), out=won)
        incoming = gradient[images][meeting.windows]
        if overlapping:
            np.add(target, incoming, out=target, where=won)
        else:
            np.multiply(incoming, won, out=target)

    def run() -> None:
        output.fill(0)
        for first in range(0, len(output), tile):
            for meeting in meetings:
                hand_over(meeting, slice(first, first + tile))

    return run


def _overlapping(call: Call) -> bool:
    sizes = zip(call.pair("stride", 1), call.pair("kernel", 2), strict=True)
    return any(stride < kernel for stride, kernel in sizes)


def bind_avg_pool2d(call: Call) -> Bound:
    """Return the mean of each window, padding counted as zeros."""
    (source,), (output,) = call.inputs, call.outputs
    meetings, share = _meetings(call, source, output), _share(call)

    def run() -> None:
        output.fill(0)
        for meeting in meetings:
            target = output[meeting.windows]
            np.add(target, meeting.pixels, out=target)
        np.multiply(output, share, out=output)

    return run


def bind_avg_pool2d_grad(call: Call) -> Bound:
    """Hand each window's gradient to its pixels in equal shares."""
    (gradient,), (output,) = call.inputs, call.outputs
    meetings, share = _meetings(call, output, gradient), _share(call)

    def run() -> None:
        output.fill(0)
        for meeting in meetings:
            np.add(meeting.pixels, gradient[meeting.windows], out=meeting.pixels)
        np.multiply(output, share, out=output)

    return run


def _share(call: Call) -> float:
    rows, columns = call.pair("kernel", 2)
    return 1.0 / (rows * columns)


def bind_global_avg_pool(call: Call) -> Bound:
    """Return the mean of each channel: sums as products with ones, whichever way the images lie."""
    (source,), (output,) = call.inputs, call.outputs
    pixels = source.shape[2] * source.shape[3]
    share, row = 1.0 / pixels, ones(pixels, source.dtype)
    lying = stored(source, call.order)
    if call.order is Order.SAMPLES:
        left, right, sums = lying.reshape(-1, pixels), row, output.reshape(-1)
    elif call.order is Order.PIXELS:
        left, right, sums = row, lying.reshape(pixels, -1), output.reshape(-1)
    else:
        left, right, sums = row, lying.reshape(len(lying), pixels, -1), output.T

    def run() -> None:
        np.matmul(left, right, out=sums)
        np.multiply(output, share, out=output)

    return run


def bind_global_avg_pool_grad(call: Call) -> Bound:
    """Hand each channel's gradient to its pixels in equal shares: to the first, which the others are copied from."""
    (gradient,), (output,) = call.inputs, call.outputs
    pixels = output.shape[2] * output.shape[3]
    share, lying = 1.0 / pixels, stored(output, call.order)
    if call.order is Order.SAMPLES:
        column = gradient[:, :, np.newaxis, np.newaxis]
        return lambda: np.multiply(column, share, out=output)
    if call.order is Order.PIXELS:
        by_pixel, source = lying.reshape(1, pixels, -1), gradient.reshape(1, -1)
    else:
        by_pixel, source = lying.reshape(len(lying), pixels, -1), gradient.T
    first, others = by_pixel[:, 0], by_pixel[:, 1:]

    def run() -> None:
        np.multiply(source, share, out=first)
        np.copyto(others, first[:, np.newaxis])

    return run


KERNELS = {
    "max_pool2d": bind_max_pool2d,
    "max_pool2d_grad": bind_max_pool2d_grad,
    "avg_pool2d": bind_avg_pool2d,
    "avg_pool2d_grad": bind_avg_pool2d_grad,
    "global_avg_pool": bind_global_avg_pool,
    "global_avg_pool_grad": bind_global_avg_pool_grad,
}
