"""Kernels of the rectifiers, whose backward needs one bit per element.

Bits are packed and unpacked tile by tile: whole samples when they are small, parts of a sample (on byte boundaries)
when they are large, so that neither the scratch nor numpy's own small results grow with the network.
"""

from collections.abc import Callable, Iterator

import numpy as np

from hedgerow_agent.core.kernels.call import Array, Bound, Call, ScratchCutter, stored
from hedgerow_plans.graph.ir import Order
from hedgerow_plans.graph.tiles import ACTIVATION_TILE_ELEMENTS, BYTE_TILE_ELEMENTS, images_per_tile, tile_of


def bind_relu(call: Call) -> Bound:
    """Return max(x, 0) and, if asked for, the bits that say where x was above zero."""
    (source,), output = call.inputs, call.outputs[0]
    zero, infinity = source.dtype.type(0), source.dtype.type(np.inf)
    # clip is several times faster than maximum, and keeps NaN as well; the method is half as long in Python as numpy's
    # function, which is what counts for a layer of a perceptron.
    if len(call.outputs) == 1:
        return lambda: source.clip(zero, infinity, output)
    pieces = list(_pieces(source, call.outputs[1], call.order))
    buffer = ScratchCutter(call).take((_scratch_elements(source, call.order),), np.bool_)
    spare = _spare(source, call.outputs[1], call.order)

    def run() -> None:
        spare.fill(0)
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
    pieces, scratch = list(_pieces(source, call.outputs[1], call.order)), ScratchCutter(call)
    first, second = (scratch.take((_scratch_elements(source, call.order),), np.bool_) for _ in range(2))
    spare = _spare(source, call.outputs[1], call.order)

    def run() -> None:
        spare.fill(0)
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
        for (values, bits), (result, _) in zip(
            _pieces(gradient, mask, call.order), _pieces(output, mask, call.order), strict=True
        )
    ]

    def run() -> None:
        for values, bits, result in pieces:
            np.multiply(values, np.unpackbits(bits, axis=1, count=values.shape[1]), out=result)

    return run


def bind_relu_grad_from_result(call: Call) -> Bound:
    """Let the gradient through where the result is above zero."""
    zero = call.inputs[0].dtype.type(0)

    def open_gate(result: Array, gate: Array) -> None:
        np.subtract(zero, result, out=gate)  # not its negative: that of zero has a sign

    return _bind_gate(call, open_gate)


def bind_relu6_grad_from_result(call: Call) -> Bound:
    """Let the gradient through where the result is strictly between 0 and 6: where |y - 3| - 3 is below zero."""
    three = call.inputs[0].dtype.type(3)

    def open_gate(result: Array, gate: Array) -> None:
        np.subtract(result, three, out=gate)
        np.absolute(gate, out=gate)
        np.subtract(gate, three, out=gate)

    return _bind_gate(call, open_gate)


def _bind_gate(call: Call, open_gate: Callable[[Array, Array], None]) -> Bound:
    """Return the call that keeps a gradient where the gate is below zero: its sign, spread over all bits, is a mask."""
    gradient, result, output = (stored(view, call.order).reshape(-1) for view in (*call.inputs, *call.outputs))
    whole = np.dtype(f"i{gradient.itemsize}")
    last_bit = whole.type(8 * whole.itemsize - 1)
    tile = tile_of(gradient.size, ACTIVATION_TILE_ELEMENTS)
    buffer = ScratchCutter(call).take((tile,), gradient.dtype)
    parts = [slice(first, min(gradient.size, first + tile)) for first in range(0, gradient.size, tile)]
    tiles = [
        (result[part], buffer[: part.stop - part.start], gradient[part].view(whole), output[part].view(whole))
        for part in parts
    ]

    def run() -> None:
        for values, gate, incoming, outgoing in tiles:
            open_gate(values, gate)
            bits = gate.view(whole)
            np.right_shift(bits, last_bit, out=bits)
            np.bitwise_and(incoming, bits, out=outgoing)

    return run


def _scratch_elements(source: Array, order: Order) -> int:
    if order is not Order.SAMPLES:
        return tile_of(source.size, BYTE_TILE_ELEMENTS)
    elements = int(source[0].size)
    if elements > BYTE_TILE_ELEMENTS:
        return tile_of(elements, BYTE_TILE_ELEMENTS)
    return images_per_tile(len(source), elements, BYTE_TILE_ELEMENTS) * elements


def _spare(values: Array, mask: Array, order: Order) -> Array:
    """Return the bytes of a mask that are left over where bits are packed across samples."""
    return mask.reshape(-1)[mask.size if order is Order.SAMPLES else -(-values.size // 8) :]


def _pieces(values: Array, mask: Array, order: Order) -> Iterator[tuple[Array, Array]]:
    """Yield matching parts of a tensor and of its packed bits, both as (samples, ...) matrices, or as they lie."""
    if order is not Order.SAMPLES:
        values, mask = stored(values, order).reshape(1, -1), mask.reshape(1, -1)[:, : -(-values.size // 8)]
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


KERNELS = {
    "relu": bind_relu,
    "relu6": bind_relu6,
    "relu_grad": bind_relu_grad,
    "relu_grad_from_result": bind_relu_grad_from_result,
    "relu6_grad_from_result": bind_relu6_grad_from_result,
}
