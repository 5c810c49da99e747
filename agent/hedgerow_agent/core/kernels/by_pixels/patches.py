"""Patches of images by pixels or by channels, unfolded into scratch, some rows of the result at a time.

By pixels a patch is a row of the matrix (kernel rows, kernel columns, channels); by channels it is a column (channels,
kernel rows, kernel columns), and what is copied is long runs over columns and samples. One copy fills all positions of
the window for all pixels where the same ones lie within the image: inside it that is the whole window.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby, product

import numpy as np
from numpy.lib.stride_tricks import as_strided

from hedgerow_agent.core.kernels.by_pixels.shape import Layer
from hedgerow_agent.core.kernels.call import Array, ScratchCutter
from hedgerow_plans.graph.ir import Order

Pair = tuple[Array, Array]
"""What belongs together: part of the patches, pixels of the image."""

_Found = tuple[tuple[Pair, ...], tuple[Array, ...]]


@dataclass(frozen=True, slots=True)
class Tile:
    """Some rows of the result: their patches, where these come from, and the result itself."""

    patches: Array  # (pixels of all samples, window): a matrix, whichever way it lies
    result: Array  # (pixels of all samples, outputs)
    pairs: tuple[Pair, ...]
    outside: tuple[Array, ...] = ()  # parts of the patches beyond the upper and lower edge

    def unfold(self) -> None:
        """Fill the patches; what lies beside the image was set to zero before."""
        for part in self.outside:
            part.fill(0)
        for part, pixels in self.pairs:
            np.copyto(part, pixels)

    def fold(self) -> None:
        """Add the patches to the image."""
        for part, pixels in self.pairs:
            np.add(pixels, part, out=pixels)


@dataclass(frozen=True, slots=True)
class Room:
    """Scratch for the patches of a tile, as a matrix and by what they are made of."""

    matrix: Array  # (pixels of all samples, window), whichever way it lies
    parts: Array  # (kernel rows, kernel columns, rows, columns, samples, channels)

    @classmethod
    def take(cls, layer: Layer, scratch: ScratchCutter) -> "Room":
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


def cut(layer: Layer, room: Room) -> Iterator[Tile]:
    """Yield the tiles of a layer to be unfolded; all of them use the same room."""
    return _cut(layer, room, _copies)


def cut_to_fold(layer: Layer, room: Room) -> Iterator[Tile]:
    """Yield the tiles of a layer to be folded: a position of the window at a time, as pixels belong to several."""
    return _cut(layer, room, _sums)


def beside(layer: Layer, room: Room) -> list[Array]:
    """Return the parts of patches beyond the left and right edge, of any tile: they are zero, and stay so."""
    stretches = _stretches(layer, 1, range(layer.sizes.result[1]))
    windows = [(wide, part) for wide in stretches for part in wide.beyond]
    parts = [room.parts[:, part, :, wide.output] for wide, part in windows]
    return [part for part in parts if part.size]


def _cut(layer: Layer, room: Room, find: Callable[[Layer, Array, range], _Found]) -> Iterator[Tile]:
    result, sizes = _matrix(layer.result, layer.result_order), layer.sizes
    row, at_once = sizes.result[1] * sizes.samples, sizes.unfolded_rows
    for first in range(0, sizes.result[0], at_once):
        rows = range(first, min(sizes.result[0], first + at_once))
        found = find(layer, room.parts[:, :, : len(rows)], rows)
        yield Tile(room.matrix[: len(rows) * row], result[rows.start * row : rows.stop * row], *found)


def _image(layer: Layer) -> Array:
    """Return the images as (rows, columns, samples, channels)."""
    return layer.image if layer.image_order is Order.PIXELS else layer.image.transpose(1, 2, 3, 0)


def _sums(layer: Layer, patches: Array, rows: range) -> _Found:
    image, stride, pairs = _image(layer), layer.sizes.stride[0], []
    for tap in layer.taps:
        down, across = tap.output
        begin, stop = max(rows.start, down.start), min(rows.stop, down.stop)
        if begin < stop:
            top = tap.image[0].start + (begin - down.start) * stride
            met = slice(top, top + (stop - begin - 1) * stride + 1, stride)
            part = patches[tap.row, tap.column, begin - rows.start : stop - rows.start, across]
            pairs.append((part, image[met, tap.image[1]]))
    return tuple(pairs), ()


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Rows or columns of the result at which the same positions of the window lie within the image."""

    output: slice  # counted from the first that is wanted
    window: slice
    first: int  # of the image's, that the first position meets at the first row or column

    @property
    def counts(self) -> tuple[int, int]:
        """How many positions, and how many rows or columns."""
        return self.window.stop - self.window.start, self.output.stop - self.output.start

    @property
    def beyond(self) -> tuple[slice, slice]:
        """The positions of the window before the image and behind it."""
        return slice(0, self.window.start), slice(self.window.stop, None)


def _stretches(layer: Layer, axis: int, wanted: range) -> list[_Stretch]:
    sizes = layer.sizes
    kernel, padding, length = sizes.kernel[axis], sizes.padding[axis], sizes.image[axis]

    def within(output: int) -> tuple[int, int]:
        begin = output * sizes.stride[axis] - padding
        return min(kernel, max(0, -begin)), max(0, min(kernel, length - begin))

    found = []
    for (low, high), outputs in groupby(wanted, within):
        first, *others = outputs
        covered = slice(first - wanted.start, first - wanted.start + 1 + len(others))
        found.append(_Stretch(covered, slice(low, max(low, high)), first * sizes.stride[axis] - padding + low))
    return found


def _copies(layer: Layer, patches: Array, rows: range) -> _Found:
    """Return what is copied, and the parts of patches beyond the upper and lower edge."""
    image, down, across = _image(layer), _stretches(layer, 0, rows), _stretches(layer, 1, range(layer.sizes.result[1]))
    pairs = [
        (patches[high.window, wide.window, high.output, wide.output], _windows(layer, image, high, wide))
        for high, wide in product(down, across)
        if 0 not in (*high.counts, *wide.counts)
    ]
    outside = [patches[part, :, high.output] for high in down for part in high.beyond]
    return tuple(pairs), tuple(part for part in outside if part.size)


def _windows(layer: Layer, image: Array, high: _Stretch, wide: _Stretch) -> Array:
    """Return the pixels of every position of the window, as often as they are met."""
    (window_rows, rows), (window_columns, columns) = high.counts, wide.counts
    down, across, *inner = image.strides
    steps = (down * layer.sizes.stride[0], across * layer.sizes.stride[1])
    shape = (window_rows, window_columns, rows, columns, *image.shape[2:])
    return as_strided(image[high.first :, wide.first :], shape, (down, across, *steps, *inner), writeable=False)
