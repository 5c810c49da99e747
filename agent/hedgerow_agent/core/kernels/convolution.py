"""Kernels of the two-dimensional convolution: patches are unfolded tile by tile into scratch, then multiplied.

Scratch of a tile is filled with zeros once; the rectangles that are copied are the same for every tile, so the padding
stays zero. A 1x1 convolution needs neither unfolding nor scratch, apart from its weight gradient.
"""

from dataclasses import dataclass

import numpy as np

from hedgerow_agent.core.kernels.by_pixels import convolution as by_pixels
from hedgerow_agent.core.kernels.call import Array, Bound, Call, ScratchCutter
from hedgerow_plans.graph.ir import Order
from hedgerow_plans.graph.tiles import CONVOLUTION_TILE_ELEMENTS, images_per_tile
from hedgerow_plans.graph.windows import Tap, find_taps


@dataclass(frozen=True, slots=True)
class _Shape:
    """Sizes of one convolution: images n, channels c -> o in g groups, k numbers per patch of a group, p pixels."""

    n: int
    c: int
    o: int
    g: int
    kernel: tuple[int, int]
    output: tuple[int, int]
    taps: tuple[Tap, ...]
    pointwise: bool

    @property
    def k(self) -> int:
        return self.c // self.g * self.kernel[0] * self.kernel[1]

    @property
    def p(self) -> int:
        return self.output[0] * self.output[1]

    @property
    def padded(self) -> bool:
        """Whether some patch reaches over the edge of the image."""
        whole = (slice(0, self.output[0]), slice(0, self.output[1]))
        return len(self.taps) < self.kernel[0] * self.kernel[1] or any(tap.output != whole for tap in self.taps)


def _shape_of(call: Call, image: Array, result: Array, kernel: tuple[int, int]) -> _Shape:
    stride, padding, groups = call.pair("stride", 1), call.pair("padding", 0), call.integer("groups", 1)
    output = (result.shape[2], result.shape[3])
    return _Shape(
        n=image.shape[0],
        c=image.shape[1],
        o=result.shape[1],
        g=groups,
        kernel=kernel,
        output=output,
        taps=find_taps((image.shape[2], image.shape[3]), output, kernel, stride, padding),
        pointwise=kernel == stride == (1, 1) and padding == (0, 0),
    )


_Rectangle = tuple[slice, slice, slice, slice]


def _tap_pairs(shape: _Shape, patches: Array) -> list[tuple[Array, _Rectangle]]:
    """Return, for each tap, its part of the patches (image, channel, tap, pixel) and the pixels that belong there."""
    everything = slice(None)
    return [
        (patches[:, :, tap.row, tap.column, tap.output[0], tap.output[1]], (everything, everything, *tap.image))
        for tap in shape.taps
    ]


def bind_conv2d(call: Call) -> Bound:
    """Return the convolution of x with w, plus b."""
    source, weight = call.inputs[:2]
    (output,) = call.outputs
    if call.order is not Order.SAMPLES:
        return by_pixels.bind_forward(call)
    shape = _shape_of(call, source, output, (weight.shape[2], weight.shape[3]))
    matrix = weight.reshape(shape.g, shape.o // shape.g, shape.k)
    multiply = _forward_pointwise if shape.pointwise else _forward_unfolded
    product = multiply(call, shape, matrix)
    if len(call.inputs) == 2:
        return product
    bias = call.inputs[2].reshape(shape.o, 1, 1)

    def run() -> None:
        product()
        np.add(output, bias, out=output)

    return run


def _forward_pointwise(call: Call, shape: _Shape, matrix: Array) -> Bound:
    source = call.inputs[0].reshape(shape.n, shape.g, shape.k, shape.p)
    result = call.outputs[0].reshape(shape.n, shape.g, shape.o // shape.g, shape.p)
    return lambda: np.matmul(matrix, source, out=result)


def _forward_unfolded(call: Call, shape: _Shape, matrix: Array) -> Bound:
    source, padded = call.inputs[0], shape.padded
    tile = images_per_tile(shape.n, shape.g * shape.k * shape.p, CONVOLUTION_TILE_ELEMENTS)
    patches = ScratchCutter(call).take((tile, shape.c, *shape.kernel, *shape.output), source.dtype)
    columns = patches.reshape(tile, shape.g, shape.k, shape.p)
    result = call.outputs[0].reshape(shape.n, shape.g, shape.o // shape.g, shape.p)
    copies = _tap_pairs(shape, patches)

    def run() -> None:
        if padded:
            patches.fill(0)
        for first in range(0, shape.n, tile):
            images = source[first : first + tile]
            for target, rectangle in copies:
                np.copyto(target, images[rectangle])
            np.matmul(matrix, columns, out=result[first : first + tile])

    return run


def bind_conv2d_grad_input(call: Call) -> Bound:
    """Return the gradient of x: patches of gradients, folded back by adding."""
    if call.order is not Order.SAMPLES:
        return by_pixels.bind_grad_input(call)
    (gradient, weight), (output,) = call.inputs, call.outputs
    shape = _shape_of(call, output, gradient, (weight.shape[2], weight.shape[3]))
    matrix = weight.reshape(shape.g, shape.o // shape.g, shape.k).transpose(0, 2, 1)
    incoming = gradient.reshape(shape.n, shape.g, shape.o // shape.g, shape.p)
    if shape.pointwise:
        result = output.reshape(shape.n, shape.g, shape.k, shape.p)
        return lambda: np.matmul(matrix, incoming, out=result)
    tile = images_per_tile(shape.n, shape.g * shape.k * shape.p, CONVOLUTION_TILE_ELEMENTS)
    patches = ScratchCutter(call).take((tile, shape.c, *shape.kernel, *shape.output), gradient.dtype)
    columns = patches.reshape(tile, shape.g, shape.k, shape.p)
    additions = _tap_pairs(shape, patches)

    def run() -> None:
        output.fill(0)
        for first in range(0, shape.n, tile):
            np.matmul(matrix, incoming[first : first + tile], out=columns)
            images = output[first : first + tile]
            for patch, rectangle in additions:
                target = images[rectangle]
                np.add(target, patch, out=target)

    return run


def bind_conv2d_grad_weight(call: Call) -> Bound:
    """Return the gradient of w: channels outermost, so that a whole tile is one matrix product per group."""
    if call.order is not Order.SAMPLES:
        return by_pixels.bind_grad_weight(call)
    (gradient, source), (output,) = call.inputs, call.outputs
    shape = _shape_of(call, source, gradient, (output.shape[2], output.shape[3]))
    tile = images_per_tile(shape.n, (shape.g * shape.k + shape.o) * shape.p, CONVOLUTION_TILE_ELEMENTS)
    scratch = ScratchCutter(call)
    patches = scratch.take((shape.c, *shape.kernel, tile, *shape.output), source.dtype)
    turned = scratch.take((shape.o, tile, *shape.output), source.dtype)
    rows = turned.reshape(shape.g, shape.o // shape.g, tile * shape.p)
    columns = patches.reshape(shape.g, shape.k, tile * shape.p).transpose(0, 2, 1)
    result = output.reshape(shape.g, shape.o // shape.g, shape.k)
    part = scratch.take(result.shape, source.dtype) if tile < shape.n else None
    incoming, padded = gradient.transpose(1, 0, 2, 3), shape.padded
    copies = _tap_pairs(shape, patches.transpose(3, 0, 1, 2, 4, 5))

    def unfold(first: int) -> None:
        images = source[first : first + tile]
        for target, rectangle in copies:
            np.copyto(target, images[rectangle])
        np.copyto(turned, incoming[:, first : first + tile])

    def run() -> None:
        if padded:
            patches.fill(0)
        unfold(0)
        np.matmul(rows, columns, out=result)
        if part is None:
            return
        for first in range(tile, shape.n, tile):
            unfold(first)
            np.matmul(rows, columns, out=part)
            np.add(result, part, out=result)

    return run


KERNELS = {
    "conv2d": bind_conv2d,
    "conv2d_grad_input": bind_conv2d_grad_input,
    "conv2d_grad_weight": bind_conv2d_grad_weight,
    "sgd_conv2d": by_pixels.bind_sgd,
}
