"""Convolutions of each channel with itself, images by pixels: for each position of the window a product and a sum.

The window's numbers are repeated for every sample, so that a loop runs over samples and channels at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hedgerow_agent.core.kernels.by_pixels.shape import Layer
from hedgerow_agent.core.kernels.call import Array, Bound, ScratchCutter


@dataclass(frozen=True, slots=True)
class _Meeting:
    """One position of the window in some rows of the result, axes (rows, columns, samples and channels)."""

    numbers: Array  # of the window, for every sample and channel
    pixels: Array
    result: Array
    product: Array
    whole: bool  # whether it meets the image in all of the rows


def _flat(images: Array) -> Array:
    return images.reshape(*images.shape[:2], -1)


def _numbers(layer: Layer, scratch: ScratchCutter) -> Array:
    shape = (*layer.sizes.kernel, layer.sizes.samples * layer.sizes.channels)
    return scratch.take(shape, layer.image.dtype)


def _spread(layer: Layer, numbers: Array) -> None:
    """Repeat the window of each channel for every sample."""
    target = numbers.reshape(*layer.sizes.kernel, layer.sizes.samples, layer.sizes.channels)
    np.copyto(target, layer.weight[:, 0].transpose(1, 2, 0)[:, :, np.newaxis])


def _meetings(layer: Layer, numbers: Array, room: Array) -> Iterator[list[_Meeting]]:
    """Yield, for some rows of the result at a time, where each position of the window meets the image."""
    image, result = _flat(layer.image), _flat(layer.result)
    for first in range(0, layer.sizes.result[0], layer.sizes.depthwise_rows):
        end = min(layer.sizes.result[0], first + layer.sizes.depthwise_rows)
        yield list(_of_rows(layer, (image, result, numbers, room), first, end))


def _of_rows(layer: Layer, arrays: tuple[Array, Array, Array, Array], first: int, end: int) -> Iterator[_Meeting]:
    image, result, numbers, room = arrays
    for tap in layer.taps:
        down, across = tap.output
        begin, stop = max(first, down.start), min(end, down.stop)
        if stop <= begin:
            continue
        top = tap.image[0].start + (begin - down.start) * layer.sizes.stride[0]
        rows = slice(top, top + (stop - begin - 1) * layer.sizes.stride[0] + 1, layer.sizes.stride[0])
        target = result[begin:stop, across]
        product = room[: target.size].reshape(target.shape)
        whole = (begin, stop) == (first, end)
        yield _Meeting(numbers[tap.row, tap.column], image[rows, tap.image[1]], target, product, whole)


def _room(layer: Layer, scratch: ScratchCutter) -> Array:
    sizes = layer.sizes
    return scratch.take((sizes.depthwise_rows * sizes.result[1] * sizes.samples * sizes.channels,), layer.image.dtype)


def bind_forward(layer: Layer, scratch: ScratchCutter) -> Bound:
    """Return the convolution."""
    room, output = _room(layer, scratch), layer.result
    numbers = _numbers(layer, scratch)
    tiles = [_whole_first(layer, tile) for tile in _meetings(layer, numbers, room)]
    written = all(tile and _is_whole(layer, tile[0]) for tile in tiles)

    def run() -> None:
        _spread(layer, numbers)
        if not written:
            output.fill(0)
        for tile in tiles:
            if written:
                np.multiply(tile[0].pixels, tile[0].numbers, out=tile[0].result)
            for meeting in tile[written:]:
                np.multiply(meeting.pixels, meeting.numbers, out=meeting.product)
                np.add(meeting.result, meeting.product, out=meeting.result)

    return run


def _whole_first(layer: Layer, tile: list[_Meeting]) -> list[_Meeting]:
    """Return the meetings of a tile, one that reaches all of its pixels first if there is one."""
    return sorted(tile, key=lambda meeting: not _is_whole(layer, meeting))


def _is_whole(layer: Layer, meeting: _Meeting) -> bool:
    return meeting.whole and meeting.result.shape[1] == layer.sizes.result[1]


def bind_grad_input(layer: Layer, scratch: ScratchCutter) -> Bound:
    """Return the gradient of the images."""
    room, output = _room(layer, scratch), layer.image
    numbers = _numbers(layer, scratch)
    tiles = list(_meetings(layer, numbers, room))

    def run() -> None:
        _spread(layer, numbers)
        output.fill(0)
        for tile in tiles:
            for meeting in tile:
                np.multiply(meeting.result, meeting.numbers, out=meeting.product)
                np.add(meeting.pixels, meeting.product, out=meeting.pixels)

    return run


def bind_grad_weight(layer: Layer, scratch: ScratchCutter) -> Bound:
    """Return the gradient of the window of each channel."""
    sizes, dtype = layer.sizes, layer.image.dtype
    room, ones = _room(layer, scratch), scratch.take((sizes.depthwise_rows * sizes.result[1],), dtype)
    sums = scratch.take((sizes.samples * sizes.channels,), dtype)
    totals = _numbers(layer, scratch)
    tiles = list(_meetings(layer, totals, room))
    by_sample = totals.reshape(*layer.sizes.kernel, sizes.samples, sizes.channels)
    output = layer.weight[:, 0].transpose(1, 2, 0)

    def run() -> None:
        totals.fill(0)
        ones.fill(1)
        for tile in tiles:
            for meeting in tile:
                np.multiply(meeting.pixels, meeting.result, out=meeting.product)
                matrix = meeting.product.reshape(-1, sums.size)
                np.matmul(ones[: len(matrix)], matrix, out=sums)
                np.add(meeting.numbers, sums, out=meeting.numbers)
        np.add.reduce(by_sample, axis=2, out=output)

    return run
