"""Winograd's F(2x2, 3x3) of images by pixels, with its exact gradients (Lavin and Gray, arXiv 1509.09308).

Tiles of 4x4 pixels that overlap by two become sixteen planes, one for each position in a tile; the planes of images and
weight are multiplied plane by plane, and sixteen products become 2x2 pixels. Gradients are the same maps turned round.
"""

from dataclasses import dataclass

import numpy as np

from hedgerow_agent.core.kernels.by_pixels.shape import Layer
from hedgerow_agent.core.kernels.call import Array, Bound, ScratchCutter
from hedgerow_agent.core.kernels.sinks import Sink
from hedgerow_plans.graph.ops.convolution_ways import PLANE_GAP_ELEMENTS

_WEIGHT = ((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1))
_IMAGE = ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1))
_RESULT = ((1, 1, 1, 0), (0, 1, -1, -1))


def _both_ways(matrix: tuple[tuple[float, ...], ...], dtype: np.dtype[np.generic]) -> Array:
    """Return a map of rows as the map of whole tiles."""
    one = np.array(matrix, dtype)
    return np.kron(one, one)


@dataclass(frozen=True, slots=True)
class _Planes:
    """Sixteen planes with gaps, seen as matrices of tiles and as one long row each."""

    by_tile: Array  # (16, tiles of all samples, channels)
    rows: Array  # (16, elements of a plane)
    grid: Array  # (4, 4, rows of tiles, columns of tiles, samples and channels)

    @classmethod
    def take(cls, layer: Layer, channels: int, scratch: ScratchCutter) -> "_Planes":
        """Cut sixteen planes out of scratch."""
        sizes = layer.sizes
        high, wide = sizes.image[0] // 2, sizes.image[1] // 2
        elements = sizes.tiles * channels
        room = scratch.take((16, elements + PLANE_GAP_ELEMENTS), layer.image.dtype)
        rows = room[:, :elements]
        grid = room.reshape(4, 4, -1)[:, :, :elements].reshape(4, 4, high, wide, sizes.samples * channels)
        return cls(rows.reshape(16, sizes.tiles, channels), rows, grid)


@dataclass(frozen=True, slots=True)
class _Frame:
    """Images with a border of zeros, (rows, columns, samples and channels)."""

    whole: Array
    inside: Array

    @classmethod
    def take(cls, layer: Layer, scratch: ScratchCutter) -> "_Frame":
        """Cut it out of scratch."""
        (high, wide), sizes = layer.sizes.image, layer.sizes
        whole = scratch.take((high + 2, wide + 2, sizes.samples * sizes.channels), layer.image.dtype)
        return cls(whole, whole[1 : high + 1, 1 : wide + 1])

    def clear_border(self) -> None:
        """Set the border to zero."""
        self.whole[0].fill(0)
        self.whole[-1].fill(0)
        self.whole[:, 0].fill(0)
        self.whole[:, -1].fill(0)


def _flat(images: Array) -> Array:
    return images.reshape(*images.shape[:2], -1)


def _combine(parts: tuple[Array, Array, Array, Array], targets: tuple[Array, Array, Array, Array]) -> None:
    """Apply the map of images to four neighbouring rows or columns."""
    first, second, third, fourth = parts
    np.subtract(first, third, out=targets[0])
    np.add(second, third, out=targets[1])
    np.subtract(third, second, out=targets[2])
    np.subtract(second, fourth, out=targets[3])


def _bind_transform(layer: Layer, planes: _Planes, scratch: ScratchCutter) -> Bound:
    """Return the call that makes planes of the images, by way of a frame and of a transform along rows alone."""
    (high, wide), source = layer.sizes.image, _flat(layer.image)
    frame = _Frame.take(layer, scratch)
    half = scratch.take((4, high // 2, wide + 2, source.shape[2]), source.dtype)
    rows = tuple(frame.whole[at : at + high : 2] for at in range(4))
    columns = tuple(half[:, :, at : at + wide : 2] for at in range(4))

    def run() -> None:
        frame.clear_border()
        np.copyto(frame.inside, source)
        _combine((rows[0], rows[1], rows[2], rows[3]), (half[0], half[1], half[2], half[3]))
        grid = planes.grid
        _combine((columns[0], columns[1], columns[2], columns[3]), (grid[:, 0], grid[:, 1], grid[:, 2], grid[:, 3]))

    return run


def _quarters(layer: Layer, scratch: ScratchCutter) -> tuple[Array, list[tuple[Array, Array]]]:
    """Return room for the result as four rows, one for each pixel of a tile, and which pixels belong where."""
    sizes = layer.sizes
    high, wide = sizes.result[0] // 2, sizes.result[1] // 2
    room = scratch.take((4, sizes.tiles * sizes.outputs), layer.image.dtype)
    result = _flat(layer.result)
    parts = room.reshape(4, high, wide, sizes.samples * sizes.outputs)
    return room, [(parts[2 * row + column], result[row::2, column::2]) for row in (0, 1) for column in (0, 1)]


def _weights(layer: Layer, scratch: ScratchCutter) -> Array:
    return scratch.take((16, layer.sizes.channels, layer.sizes.outputs), layer.image.dtype)


def bind_forward(layer: Layer, scratch: ScratchCutter) -> Bound:
    """Return the convolution."""
    dtype = layer.image.dtype
    to_weights, to_result = _both_ways(_WEIGHT, dtype), _both_ways(_RESULT, dtype)
    weights, window = _weights(layer, scratch), layer.window.reshape(9, -1)
    images = _Planes.take(layer, layer.sizes.channels, scratch)
    shared = scratch.used_bytes
    transform = _bind_transform(layer, images, scratch)
    scratch.back_to(shared)
    products = _Planes.take(layer, layer.sizes.outputs, scratch)
    quarters, pixels = _quarters(layer, scratch)

    def run() -> None:
        np.matmul(to_weights, window, out=weights.reshape(16, -1))
        transform()
        np.matmul(images.by_tile, weights, out=products.by_tile)
        np.matmul(to_result, products.rows, out=quarters)
        for part, target in pixels:
            np.copyto(target, part)

    return run


def _bind_gradient_planes(layer: Layer, planes: _Planes, scratch: ScratchCutter) -> Bound:
    """Return the call that makes planes of the result's gradient."""
    from_result = _both_ways(_RESULT, layer.image.dtype).T
    quarters, pixels = _quarters(layer, scratch)

    def run() -> None:
        for part, source in pixels:
            np.copyto(part, source)
        np.matmul(from_result, quarters, out=planes.rows)

    return run


def bind_grad_weight(layer: Layer, scratch: ScratchCutter, sink: Sink) -> Bound:
    """Return the gradient of the weight."""
    to_window, window = _both_ways(_WEIGHT, layer.image.dtype).T, layer.window.reshape(9, -1)
    weights = _weights(layer, scratch)
    images = _Planes.take(layer, layer.sizes.channels, scratch)
    shared = scratch.used_bytes
    transform = _bind_transform(layer, images, scratch)
    scratch.back_to(shared)
    gradients = _Planes.take(layer, layer.sizes.outputs, scratch)
    spread_out = _bind_gradient_planes(layer, gradients, scratch)
    put = sink.product((to_window, weights.reshape(16, -1)), window)

    def run() -> None:
        transform()
        spread_out()
        np.matmul(images.by_tile.transpose(0, 2, 1), gradients.by_tile, out=weights)
        put()

    return run


def bind_grad_input(layer: Layer, scratch: ScratchCutter) -> Bound:
    """Return the gradient of the images; tiles overlap, so what they give is added up."""
    dtype = layer.image.dtype
    to_weights, from_images = _both_ways(_WEIGHT, dtype), _both_ways(_IMAGE, dtype).T
    weights, window = _weights(layer, scratch), layer.window.reshape(9, -1)
    images = _Planes.take(layer, layer.sizes.channels, scratch)
    shared = scratch.used_bytes
    gradients = _Planes.take(layer, layer.sizes.outputs, scratch)
    spread_out = _bind_gradient_planes(layer, gradients, scratch)
    scratch.back_to(shared)
    tiles = _Planes.take(layer, layer.sizes.channels, scratch)
    frame = _Frame.take(layer, scratch)
    (high, wide), output = layer.sizes.image, _flat(layer.image)
    parts = [
        (frame.whole[row : row + high : 2, column : column + wide : 2], tiles.grid[row, column])
        for row in range(4)
        for column in range(4)
    ]

    def run() -> None:
        np.matmul(to_weights, window, out=weights.reshape(16, -1))
        spread_out()
        np.matmul(gradients.by_tile, weights.transpose(0, 2, 1), out=images.by_tile)
        np.matmul(from_images, images.rows, out=tiles.rows)
        frame.whole.fill(0)
        for target, part in parts:
            np.add(target, part, out=target)
        np.copyto(output, frame.inside)

    return run
