"""Kernels of the rectifiers, whose backward needs one bit per element.

Bits are packed and unpacked tile by tile: whole samples when they are small, parts of a sample (on byte boundaries)
when they are large, so that neither the scratch nor numpy's own small results grow with the network.
"""

from collections.abc import Iterator

import numpy as np

from hedgerow_agent.core.kernels.call import Array, Bound, Call, ScratchCutter
from hedgerow_plans.graph.tiles import BYTE_TILE_ELEMENTS, images_per_tile, tile_of


def bind_relu(call: Call) -> Bound:
    """Return max(x, 0) and, if asked for, the bits that say where x was above zero."""
    (source,), output = call.inputs, call.outputs[0]
    zero, infinity = source.dtype.type(0), source.dtype.type(np.inf)
    # clip is several times faster than maximum, and keeps NaN as well.
    if len(call.outputs) == 1:
        return lambda: np.clip(source, zero, infinity, out=output)
    pieces = list(_pieces(source, call.outputs[1]))
    buffer = ScratchCutter(call).take((_scratch_elements(source),), np.bool_)

    def run() -> None:
        np.clip(source, zero, infinity, out=output)
        for values, bits in pieces:
            above = buffer[: values.size].reshape(values.shape)
            np.greater(values, zero, out=above)
            np.copyto(bits, np.packbits(above, axis=1))

    return run


def bind_relu6(call: Call) -> Bound:
    """Return x between 0 and 6 and, if asked for, the bits that say where x was strictly between them."""
    (source,), output = call.inputs, call.outputs[0]
    zero, six = source.dtype.type(0), source.dtype.type(6)
    if len(call.outputs) == 1:
        return lambda: np.clip(source, zero, six, out=output)
    pieces, scratch = list(_pieces(source, call.outputs[1])), ScratchCutter(call)
    first, second = (scratch.take((_scratch_elements(source),), np.bool_) for _ in range(2))

    def run() -> None:
        np.clip(source, zero, six, out=output)
        for values, bits in pieces:
            inside, below = (buffer[: values.size].reshape(values.shape) for buffer in (first, second))
            np.greater(values, zero, out=inside)
            np.less(values, six, out=below)
            np.logical_and(inside, below, out=inside)
            np.copyto(bits, np.packbits(inside, axis=1))

    return run


def bind_relu_grad(call: Call) -> Bound:
    """Let the gradient through where the bit is set."""
    (gradient, mask), (output,) = call.inputs, call.outputs
    pieces = [
        (values, bits, result)
        for (values, bits), (result, _) in zip(_pieces(gradient, mask), _pieces(output, mask), strict=True)
    ]

    def run() -> None:
        for values, bits, result in pieces:
            np.multiply(values, np.unpackbits(bits, axis=1, count=values.shape[1]), out=result)

    return run


def _scratch_elements(source: Array) -> int:
    elements = int(source[0].size)
    if elements > BYTE_TILE_ELEMENTS:
        return tile_of(elements, BYTE_TILE_ELEMENTS)
    return images_per_tile(len(source), elements, BYTE_TILE_ELEMENTS) * elements


def _pieces(values: Array, mask: Array) -> Iterator[tuple[Array, Array]]:
    """Yield matching parts of a tensor and of its packed bits, both as (samples, ...) matrices."""
    samples, elements = len(values), values[0].size
    flat = values.reshape(samples, elements)
    if elements > BYTE_TILE_ELEMENTS:
        for sample in range(samples):
            for first in range(0, elements, BYTE_TILE_ELEMENTS):
                end = min(elements, first + BYTE_TILE_ELEMENTS)
                yield flat[sample : sample + 1, first:end], mask[sample : sample + 1, first // 8 : -(-end // 8)]
        return
    tile = images_per_tile(samples, elements, BYTE_TILE_ELEMENTS)
    for first in range(0, samples, tile):
        yield flat[first : first + tile], mask[first : first + tile]


KERNELS = {"relu": bind_relu, "relu6": bind_relu6, "relu_grad": bind_relu_grad}
