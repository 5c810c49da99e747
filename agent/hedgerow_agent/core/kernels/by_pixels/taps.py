"""Convolutions of small images by pixels: one matrix product for each position of the window, where it meets the image.

What hangs over the edge is never computed: of a 2x2 image under a 3x3 window that is more than half. The position that
meets every pixel comes first and writes; the others are added.
"""

from dataclasses import dataclass

import numpy as np

from hedgerow_agent.core.kernels.by_pixels.shape import Layer
from hedgerow_agent.core.kernels.call import Array, Bound, ScratchCutter
from hedgerow_agent.core.kernels.sinks import Sink
from hedgerow_plans.graph.ops.convolution_ways import added_pixels, copied_pixels, is_apart, meets_all
from hedgerow_plans.graph.windows import Tap


@dataclass(frozen=True, slots=True)
class _Operand:
    """What a tap reads: its pixels, and the matrix they are multiplied as."""

    pixels: Array  # (rows, columns, samples, channels), a part of the images
    matrix: Array  # (pixels of all samples, channels): where the pixels are, or room for a copy
    copied: bool

    def fetch(self) -> None:
        """Copy the pixels into the matrix if they lie apart."""
        if self.copied:
            np.copyto(self.matrix.reshape(self.pixels.shape), self.pixels)


def _pixels(layer: Layer, tap: Tap, *, in_image: bool) -> Array:
    return layer.image[tap.image] if in_image else layer.result[tap.output]


def _room(layer: Layer, scratch: ScratchCutter, pixels: int, *, in_image: bool) -> Array:
    channels = layer.sizes.channels if in_image else layer.sizes.outputs
    return scratch.take((pixels, channels), layer.image.dtype)


def _operand(layer: Layer, tap: Tap, room: Array, *, in_image: bool) -> _Operand:
    pixels = _pixels(layer, tap, in_image=in_image)
    count, copied = pixels.size // pixels.shape[-1], is_apart(layer.sizes, tap, in_image=in_image)
    return _Operand(pixels, room[:count] if copied else pixels.reshape(count, -1), copied)


def bind_forward(layer: Layer, scratch: ScratchCutter) -> Bound:
    """Return the convolution."""
    return _bind_sum(layer, scratch, to_image=False)


def bind_grad_input(layer: Layer, scratch: ScratchCutter) -> Bound:
    """Return the gradient of the images."""
    return _bind_sum(layer, scratch, to_image=True)


def _bind_sum(layer: Layer, scratch: ScratchCutter, *, to_image: bool) -> Bound:
    """Return the call that multiplies one side of the layer tap by tap and adds up the other."""
    sizes, output = layer.sizes, layer.image if to_image else layer.result
    copies = _room(layer, scratch, copied_pixels(sizes, in_image=not to_image), in_image=not to_image)
    products = _room(layer, scratch, added_pixels(sizes, in_image=to_image), in_image=to_image)
    taps = sorted(layer.taps, key=lambda tap: not meets_all(sizes, tap, in_image=to_image))
    whole = bool(taps) and meets_all(sizes, taps[0], in_image=to_image)
    steps = []
    for number, tap in enumerate(taps):
        matrix = layer.window[tap.row, tap.column]
        operand, target = _operand(layer, tap, copies, in_image=not to_image), _pixels(layer, tap, in_image=to_image)
        written = whole and number == 0
        product = output.reshape(-1, output.shape[-1]) if written else products[: len(operand.matrix)]
        steps.append((operand, matrix.T if to_image else matrix, product, None if written else target))

    def run() -> None:
        if not whole:
            output.fill(0)
        for operand, matrix, product, target in steps:
            operand.fetch()
            np.matmul(operand.matrix, matrix, out=product)
            if target is not None:
                np.add(target, product.reshape(target.shape), out=target)

    return run


def bind_grad_weight(layer: Layer, scratch: ScratchCutter, sink: Sink) -> Bound:
    """Return the gradient of the weight: each position has a matrix of its own."""
    sizes, output = layer.sizes, layer.window
    near = _room(layer, scratch, copied_pixels(sizes, in_image=True), in_image=True)
    far = _room(layer, scratch, copied_pixels(sizes, in_image=False), in_image=False)
    steps = []
    for tap in layer.taps:
        source = _operand(layer, tap, near, in_image=True)
        gradient = _operand(layer, tap, far, in_image=False)
        multiply = sink.product((source.matrix.T, gradient.matrix), output[tap.row, tap.column])
        steps.append((source, gradient, multiply))
    partial = len(layer.taps) < sizes.kernel[0] * sizes.kernel[1]

    def run() -> None:
        if partial:
            sink.clear(output)
        for source, gradient, multiply in steps:
            source.fetch()
            gradient.fetch()
            multiply()

    return run
