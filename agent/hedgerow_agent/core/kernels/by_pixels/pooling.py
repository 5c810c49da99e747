"""Pooling of images by pixels or by channels, some rows of windows at a time.

Which position of a window won is found while the maximum grows: each position that is larger than all before it writes
its number over theirs. Numbers grow too, so that writing is a maximum of bytes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from hedgerow_agent.core.kernels.call import Array, Bound, Call, ScratchCutter, stored
from hedgerow_plans.graph.ir import Order
from hedgerow_plans.graph.tiles import pooled_rows
from hedgerow_plans.graph.windows import Tap, find_taps

_Index = tuple[slice, ...]


@dataclass(frozen=True, slots=True)
class _Meeting:
    """One position of the window in some rows of windows: its number, its pixels, and the windows that have one."""

    position: int
    pixels: Array
    windows: _Index


def _lead(order: Order) -> _Index:
    """Return the slices of the axes outside the rows."""
    return () if order is Order.PIXELS else (slice(None),)


def _tiles(call: Call, image: Array, pooled: Array) -> Iterator[list[_Meeting]]:
    kernel, stride = call.pair("kernel", 2), call.pair("stride", 1)
    taps = find_taps(image.shape[2:], pooled.shape[2:], kernel, stride, call.pair("padding", 0))
    rows = pooled_rows(pooled.shape[2], pooled.size)
    lying = stored(image, call.order)
    for first in range(0, pooled.shape[2], rows):
        end = min(pooled.shape[2], first + rows)
        yield [
            _Meeting(tap.row * kernel[1] + tap.column, lying[pixels], windows)
            for tap in taps
            for pixels, windows in _rectangles(tap, _lead(call.order), stride[0], first, end)
        ]


def _rectangles(tap: Tap, lead: _Index, stride: int, first: int, end: int) -> Iterator[tuple[_Index, _Index]]:
    down, across = tap.output
    begin, stop = max(first, down.start), min(end, down.stop)
    if stop > begin:
        top = tap.image[0].start + (begin - down.start) * stride
        rows = slice(top, top + (stop - begin - 1) * stride + 1, stride)
        yield (*lead, rows, tap.image[1]), (*lead, slice(begin, stop), across)


def bind_max(call: Call) -> Bound:
    """Return the largest value of each window and, if asked for, its position (the first one, if several are equal)."""
    (source,), output = call.inputs, stored(call.outputs[0], call.order)
    tiles = [
        [(meeting.pixels, output[meeting.windows], meeting) for meeting in tile]
        for tile in _tiles(call, source, call.outputs[0])
    ]
    begun = int(_begins_with_a_copy(call, tiles))
    firsts = [part for tile in tiles for part in tile[:begun]]
    others = [part for tile in tiles for part in tile[begun:]]
    compare = _bind_position(call) if len(call.outputs) > 1 else _keep_larger
    index = call.outputs[1:]

    def run() -> None:
        if not begun:
            output.fill(-np.inf)
        for numbers in index:
            numbers.fill(0)
        for pixels, target, _ in firsts:
            np.copyto(target, pixels)
        for part in others:
            compare(*part)

    return run


def _begins_with_a_copy(call: Call, tiles: list[list[tuple[Array, Array, _Meeting]]]) -> bool:
    """Whether the first position of a window needs no comparison: every window has one, and promised scratch is used.

    Windows that hang over the edge lack later positions; if all of them do, the first alone needs all of the scratch.
    """
    if call.pair("padding", 0) != (0, 0):
        return False
    sizes = [[target.size for _, target, _ in tile] for tile in tiles]
    return max((max(tile[1:], default=0) for tile in sizes), default=0) == max(map(max, sizes))


def _keep_larger(pixels: Array, target: Array, _meeting: _Meeting) -> None:
    np.maximum(target, pixels, out=target)


def _bind_position(call: Call) -> Callable[[Array, Array, _Meeting], None]:
    index = stored(call.outputs[1], call.order)
    room = ScratchCutter(call).take((2, call.scratch.nbytes // 2), np.uint8)

    def keep_larger_and_its_position(pixels: Array, target: Array, meeting: _Meeting) -> None:
        position = index[meeting.windows]
        larger, number = (part[: target.size].reshape(target.shape) for part in room)
        np.greater(pixels, target, out=larger.view(np.bool_))
        np.multiply(larger, np.uint8(meeting.position), out=number)
        np.maximum(position, number, out=position)
        np.maximum(target, pixels, out=target)

    return keep_larger_and_its_position


def bind_max_grad(call: Call) -> Bound:
    """Hand each gradient to the pixel that won its window."""
    gradient, index = (stored(view, call.order) for view in call.inputs)
    output = stored(call.outputs[0], call.order)
    tiles = list(_tiles(call, call.outputs[0], call.inputs[0]))
    scratch, most = ScratchCutter(call), call.scratch.nbytes // (5 * gradient.itemsize // 4)
    shares, wins = scratch.take((most,), gradient.dtype), scratch.take((most,), np.bool_)
    alone = all(step >= size for step, size in zip(call.pair("stride", 1), call.pair("kernel", 2), strict=True))

    def hand_over(meeting: _Meeting) -> None:
        position, incoming = index[meeting.windows], gradient[meeting.windows]
        won = wins[: position.size].reshape(position.shape)
        np.equal(position, np.uint8(meeting.position), out=won)
        if alone:
            np.multiply(incoming, won, out=meeting.pixels)
            return
        share = shares[: position.size].reshape(position.shape)
        np.multiply(incoming, won, out=share)
        np.add(meeting.pixels, share, out=meeting.pixels)

    covered = alone and sum(meeting.pixels.size for tile in tiles for meeting in tile) == output.size

    def run() -> None:
        if not covered:
            output.fill(0)
        for tile in tiles:
            for meeting in tile:
                hand_over(meeting)

    return run
