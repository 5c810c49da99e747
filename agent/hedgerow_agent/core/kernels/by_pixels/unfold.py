"""Convolutions by unfolded patches of images by pixels or by channels, some rows of the result at a time.

By pixels a patch is a row of the matrix (kernel rows, kernel columns, channels); by channels it is a column (channels,
kernel rows, kernel columns), and what is copied for a position of the window is long runs over columns and samples.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hedgerow_agent.core.kernels.by_pixels.shape import Layer
from hedgerow_agent.core.kernels.call import Array, Bound, ScratchCutter
from hedgerow_plans.graph.ir import Order


@dataclass(frozen=True, slots=True)
class _Tile:
    """Some rows of the result: their patches, where these come from, and the result itself."""

    patches: Array  # (pixels of all samples, window): a matrix, whichever way it lies
    pairs: tuple[tuple[Array, Array], ...]  # what belongs together: part of the patches, pixels of the image
    outside: tuple[Array, ...]  # parts of the patches beyond the upper and lower edge
    result: Array  # (pixels of all samples, outputs)

    def unfold(self) -> None:
        """Fill the patches; what lies beyond the left and right edge was set to zero before."""
        for part in self.outside:
            part.fill(0)
        for part, pixels in self.pairs:
            np.copyto(part, pixels)

    def fold(self) -> None:
        """Add the patches to the image."""
        for part, pixels in self.pairs:
            np.add(pixels, part, out=pixels)


def _weight_matrix(layer: Layer) -> Array:
    """Return the weight as (window, outputs), in the order of a patch."""
    if layer.image_order is Order.PIXELS:
        return layer.window.reshape(layer.sizes.window, layer.sizes.outputs)
    return layer.weight.reshape(layer.sizes.outputs, layer.sizes.window).T


@dataclass(frozen=True, slots=True)
class _Room:
    """Scratch for the patches of a tile, as a matrix and by what they are made of."""

    matrix: Array  # (pixels of all samples, window), whichever way it lies
    parts: Array  # (kernel rows, kernel columns, rows, columns, samples, channels)

    @classmethod
    def take(cls, layer: Layer, scratch: ScratchCutter) -> "_Room":
        """Cut it out of scratch."""
        sizes, dtype = layer.sizes, layer.image.dtype
        tile = (sizes.unfolded_rows, sizes.result[1], sizes.samples)
        if layer.image_order is Order.PIXELS:
            room = scratch.take((*tile, *layer.sizes.kernel, sizes.channels), dtype)
            return cls(room.reshape(-1, sizes.window), room.transpose(3, 4, 0, 1, 2, 5))
        room = scratch.take((sizes.channels, *layer.sizes.kernel, *tile), dtype)
        return cls(room.reshape(sizes.window, -1).T, room.transpose(1, 2, 3, 4, 5, 0))


def _matrix(images: Array, order: Order) -> Array:
    """Return images as (pixels of all samples, channels), whichever way they lie."""
    return images.reshape(-1, images.shape[3]) if order is Order.PIXELS else images.reshape(len(images), -1).T


def _cut(layer: Layer, room: _Room) -> Iterator[_Tile]:
    """Yield the tiles of a layer; all of them use the same room."""
    image = layer.image if layer.image_order is Order.PIXELS else layer.image.transpose(1, 2, 3, 0)
    result, row = _matrix(layer.result, layer.result_order), layer.sizes.result[1] * layer.sizes.samples
    for first in range(0, layer.sizes.result[0], layer.sizes.unfolded_rows):
        end = min(layer.sizes.result[0], first + layer.sizes.unfolded_rows)
        pairs, outside = _meet(layer, room.parts[:, :, : end - first], image, first, end)
        yield _Tile(room.matrix[: (end - first) * row], pairs, outside, result[first * row : end * row])


def _meet(
    layer: Layer, patches: Array, image: Array, first: int, end: int
) -> tuple[tuple[tuple[Array, Array], ...], tuple[Array, ...]]:
    pairs, outside = [], []
    for tap in layer.taps:
        down, across = tap.output
        begin, stop = max(first, down.start), min(end, down.stop)
        part = patches[tap.row, tap.column]
        if stop <= begin:
            outside.append(part)
            continue
        outside += [rows for rows in (part[: begin - first], part[stop - first :]) if len(rows)]
        top = tap.image[0].start + (begin - down.start) * layer.sizes.stride[0]
        rows = slice(top, top + (stop - begin - 1) * layer.sizes.stride[0] + 1, layer.sizes.stride[0])
        pairs.append((part[begin - first : stop - first, across], image[rows, tap.image[1]]))
    return tuple(pairs), tuple(outside)


def _padded(layer: Layer) -> bool:
    whole = slice(0, layer.sizes.result[1])
    return len(layer.taps) < layer.sizes.kernel[0] * layer.sizes.kernel[1] or any(
        tap.output[1] != whole for tap in layer.taps
    )


def bind_forward(layer: Layer, scratch: ScratchCutter) -> Bound:
    """Return the convolution."""
    room, weight, padded = _Room.take(layer, scratch), _weight_matrix(layer), _padded(layer)
    tiles = list(_cut(layer, room))
    turned = layer.result_order is Order.CHANNELS

    def run() -> None:
        if padded:
            room.matrix.fill(0)
        for tile in tiles:
            tile.unfold()
            if turned:
                np.matmul(weight.T, tile.patches.T, out=tile.result.T)
            else:
                np.matmul(tile.patches, weight, out=tile.result)

    return run


def bind_grad_input(layer: Layer, scratch: ScratchCutter) -> Bound:
    """Return the gradient of the images: patches of gradients, folded back by adding."""
    weight = _weight_matrix(layer)
    tiles = list(_cut(layer, _Room.take(layer, scratch)))
    turned, output = layer.image_order is Order.CHANNELS, layer.image

    def run() -> None:
        output.fill(0)
        for tile in tiles:
            if turned:
                np.matmul(weight, tile.result.T, out=tile.patches.T)
            else:
                np.matmul(tile.result, weight.T, out=tile.patches)
            tile.fold()

    return run


def bind_grad_weight(layer: Layer, scratch: ScratchCutter) -> Bound:
    """Return the gradient of the weight, summed over the tiles."""
    room, output, padded = _Room.take(layer, scratch), _weight_matrix(layer), _padded(layer)
    by_outputs = layer.image_order is Order.CHANNELS
    if by_outputs:
        output = output.T
    first, *others = _cut(layer, room)
    part = scratch.take(output.shape, output.dtype) if others else output

    def multiply(tile: _Tile, out: Array) -> None:
        tile.unfold()
        if by_outputs:
            np.matmul(tile.result.T, tile.patches, out=out)
        else:
            np.matmul(tile.patches.T, tile.result, out=out)

    def run() -> None:
        if padded:
            room.matrix.fill(0)
        multiply(first, output)
        for tile in others:
            multiply(tile, part)
            np.add(output, part, out=output)

    return run
