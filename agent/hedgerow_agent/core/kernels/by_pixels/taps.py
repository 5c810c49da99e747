"""Convolutions of small images by pixels: one matrix product for each position of the window, where it meets the image.

What hangs over the edge is never computed: of a 2x2 image under a 3x3 window that is more than half. The position that
meets every pixel comes first and writes; the others are added.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hedgerow_agent.core.kernels.by_pixels.shape import Layer
from hedgerow_agent.core.kernels.call import Array, Bound, ScratchCutter
from hedgerow_agent.core.kernels.windows import Tap


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a tap: its pixels, and the matrix they are read from or computed in."""

    pixels: Array  # (rows, columns, samples, channels), a part of the images
    matrix: Array  # (pixels of all samples, channels); a view of the images where they are whole
    copied: bool

    @classmethod
    def of(cls, images: Array, rectangle: tuple[slice, slice], room: Array) -> "_Side":
        """Look at a rectangle of images; what is no matrix as it lies gets room for a copy."""
        pixels = images[rectangle]
        copied = not pixels.flags.c_contiguous
        shape = (pixels.size // pixels.shape[-1], pixels.shape[-1])
        return cls(pixels, (room[: pixels.size] if copied else pixels).reshape(shape), copied)

    def fetch(self) -> None:
        """Copy the pixels into the matrix if they lie apart."""
        if self.copied:
            np.copyto(self.matrix.reshape(self.pixels.shape), self.pixels)

    def add(self, room: Array) -> None:
        """Add a matrix of products to the pixels."""
        np.add(self.pixels, room.reshape(self.pixels.shape), out=self.pixels)


def _rooms(layer: Layer, scratch: ScratchCutter) -> tuple[Array, Array]:
    """Return flat room for the pixels of the image and of the result."""
    sizes, dtype = layer.sizes, layer.image.dtype
    return scratch.take((sizes.pixels * sizes.channels,), dtype), scratch.take((sizes.pixels * sizes.outputs,), dtype)


def _whole_first(layer: Layer, images: Array, *, of_result: bool) -> tuple[Iterator[Tap], bool]:
    """Return the taps, one that meets all pixels of some images first, and whether there is such a one."""

    def meets_all(tap: Tap) -> bool:
        return images[tap.output if of_result else tap.image].shape[:2] == images.shape[:2]

    ordered = sorted(layer.taps, key=lambda tap: not meets_all(tap))
    return iter(ordered), bool(ordered) and meets_all(ordered[0])


def bind_forward(layer: Layer, scratch: ScratchCutter) -> Bound:
    """Return the convolution."""
    near, far = _rooms(layer, scratch)
    taps, whole = _whole_first(layer, layer.result, of_result=True)
    products = [
        (
            _Side.of(layer.image, tap.image, near),
            layer.window[tap.row, tap.column],
            _Side.of(layer.result, tap.output, far),
        )
        for tap in taps
    ]
    return _bind_products(products, layer.result, far, whole)


def bind_grad_input(layer: Layer, scratch: ScratchCutter) -> Bound:
    """Return the gradient of the images."""
    near, far = _rooms(layer, scratch)
    taps, whole = _whole_first(layer, layer.image, of_result=False)
    products = [
        (
            _Side.of(layer.result, tap.output, far),
            layer.window[tap.row, tap.column].T,
            _Side.of(layer.image, tap.image, near),
        )
        for tap in taps
    ]
    return _bind_products(products, layer.image, near, whole)


def _bind_products(products: list[tuple[_Side, Array, _Side]], output: Array, room: Array, whole: bool) -> Bound:
    """Return the call that adds up all products; the first one is written if it reaches every pixel."""
    first, others = (products[:1], products[1:]) if whole else ([], products)
    added = [
        (source, matrix, target, room[: target.matrix.size].reshape(target.matrix.shape))
        for source, matrix, target in others
    ]

    def run() -> None:
        if not first:
            output.fill(0)
        for source, matrix, target in first:
            source.fetch()
            np.matmul(source.matrix, matrix, out=target.matrix)
        for source, matrix, target, product in added:
            source.fetch()
            np.matmul(source.matrix, matrix, out=product)
            target.add(product)

    return run


def bind_grad_weight(layer: Layer, scratch: ScratchCutter) -> Bound:
    """Return the gradient of the weight: each position has a matrix of its own."""
    near, far = _rooms(layer, scratch)
    output = layer.window
    products = [
        (
            _Side.of(layer.image, tap.image, near),
            _Side.of(layer.result, tap.output, far),
            output[tap.row, tap.column],
        )
        for tap in layer.taps
    ]
    partial = len(layer.taps) < layer.kernel[0] * layer.kernel[1]

    def run() -> None:
        if partial:
            output.fill(0)
        for source, gradient, target in products:
            source.fetch()
            gradient.fetch()
            np.matmul(source.matrix.T, gradient.matrix, out=target)

    return run
