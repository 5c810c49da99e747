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


def _patches(layer: Layer, scratch: ScratchCutter) -> Array:
    """Return room for the patches of a tile, axes (kernel rows, kernel columns, rows, columns, samples, channels)."""
    sizes, dtype = layer.sizes, layer.image.dtype
    tile = (sizes.unfolded_rows, sizes.result[1], sizes.samples)
    if layer.image_order is Order.PIXELS:
        return scratch.take((*tile, *layer.kernel, sizes.channels), dtype).transpose(3, 4, 0, 1, 2, 5)
    return scratch.take((sizes.channels, *layer.kernel, *tile), dtype).transpose(1, 2, 3, 4, 5, 0)


def _cut(layer: Layer, patches: Array) -> Iterator[_Tile]:
    """Yield the tiles of a layer; all of them use the same room."""
    by_pixels = layer.image_order is Order.PIXELS
    image = layer.image if by_pixels else layer.image.transpose(1, 2, 3, 0)
    result = layer.result if layer.result_order is Order.PIXELS else layer.result.transpose(1, 2, 3, 0)
    for first in range(0, layer.sizes.result[0], layer.sizes.unfolded_rows):
        end = min(layer.sizes.result[0], first + layer.sizes.unfolded_rows)
        part = patches[:, :, : end - first]
        pairs, outside = _meet(layer, part, image, first, end)
        yield _Tile(_as_matrix(part, layer, by_pixels), pairs, outside, _rows_matrix(result[first:end]))


def _as_matrix(patches: Array, layer: Layer, by_pixels: bool) -> Array:
    if by_pixels:
        return patches.transpose(2, 3, 4, 0, 1, 5).reshape(-1, layer.sizes.window)
    lying = patches.transpose(5, 0, 1, 2, 3, 4)
    pixels = lying[0, 0, 0].size
    # rows of a shorter last tile lie as far apart as those of a whole one
    return np.lib.stride_tricks.as_strided(lying, (pixels, layer.sizes.window), (lying.strides[-1], lying.strides[2]))


def _rows_matrix(rows: Array) -> Array:
    """Return rows of images (rows, columns, samples, channels) as (pixels of all samples, channels), by any strides."""
    pixels = rows.shape[0] * rows.shape[1] * rows.shape[2]
    return np.lib.stride_tricks.as_strided(rows, (pixels, rows.shape[3]), (rows.strides[2], rows.strides[3]))


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
        top = tap.image[0].start + (begin - down.start) * layer.stride[0]
        rows = slice(top, top + (stop - begin - 1) * layer.stride[0] + 1, layer.stride[0])
        pairs.append((part[begin - first : stop - first, across], image[rows, tap.image[1]]))
    return tuple(pairs), tuple(outside)


def _padded(layer: Layer) -> bool:
    whole = slice(0, layer.sizes.result[1])
    return len(layer.taps) < layer.kernel[0] * layer.kernel[1] or any(tap.output[1] != whole for tap in layer.taps)


def bind_forward(layer: Layer, scratch: ScratchCutter) -> Bound:
    """Return the convolution."""
    patches, weight, padded = _patches(layer, scratch), _weight_matrix(layer), _padded(layer)
    tiles = list(_cut(layer, patches))
    turned = layer.result_order is Order.CHANNELS

    def run() -> None:
        if padded:
            patches.fill(0)
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
    tiles = list(_cut(layer, _patches(layer, scratch)))
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
    patches, output, padded = _patches(layer, scratch), _weight_matrix(layer), _padded(layer)
    by_outputs = layer.image_order is Order.CHANNELS
    if by_outputs:
        output = output.T
    first, *others = _cut(layer, patches)
    part = scratch.take(output.shape, output.dtype) if others else output

    def multiply(tile: _Tile, out: Array) -> None:
        tile.unfold()
        if by_outputs:
            np.matmul(tile.result.T, tile.patches, out=out)
        else:
            np.matmul(tile.patches.T, tile.result, out=out)

    def run() -> None:
        if padded:
            patches.fill(0)
        multiply(first, output)
        for tile in others:
            multiply(tile, part)
            np.add(output, part, out=output)

    return run
