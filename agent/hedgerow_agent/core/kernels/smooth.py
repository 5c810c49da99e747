"""Kernels of activations that are no rectifiers: sigmoid, tanh, silu and hard swish."""

import numpy as np

from hedgerow_agent.core.kernels.call import Array, Bound, Call, ScratchCutter
from hedgerow_plans.graph.tiles import ACTIVATION_TILE_ELEMENTS, tile_of


def _tiles(call: Call) -> list[tuple[Array, ...]]:
    """Return matching flat parts of all inputs and the output."""
    arrays = [array.reshape(-1) for array in (*call.inputs, *call.outputs)]
    tile = _tile(call)
    return [tuple(array[first : first + tile] for array in arrays) for first in range(0, arrays[0].size, tile)]


def _tile(call: Call) -> int:
    return tile_of(call.inputs[0].size, ACTIVATION_TILE_ELEMENTS)


def _set_sigmoid(source: Array, output: Array) -> None:
    np.negative(source, out=output)
    np.exp(output, out=output)
    np.add(output, 1, out=output)
    np.reciprocal(output, out=output)


def bind_sigmoid(call: Call) -> Bound:
    """Return 1 / (1 + exp(-x))."""
    (source,), (output,) = call.inputs, call.outputs
    return lambda: _set_sigmoid(source, output)


def bind_sigmoid_grad(call: Call) -> Bound:
    """Return dy * y * (1 - y)."""
    (gradient, result), (output,) = call.inputs, call.outputs

    def run() -> None:
        np.subtract(1, result, out=output)
        np.multiply(output, result, out=output)
        np.multiply(output, gradient, out=output)

    return run


def bind_tanh(call: Call) -> Bound:
    """Return tanh(x)."""
    (source,), (output,) = call.inputs, call.outputs
    return lambda: np.tanh(source, out=output)


def bind_tanh_grad(call: Call) -> Bound:
    """Return dy * (1 - y^2)."""
    (gradient, result), (output,) = call.inputs, call.outputs

    def run() -> None:
        np.multiply(result, result, out=output)
        np.subtract(1, output, out=output)
        np.multiply(output, gradient, out=output)

    return run


def bind_silu(call: Call) -> Bound:
    """Return x * sigmoid(x)."""
    (source,), (output,) = call.inputs, call.outputs

    def run() -> None:
        _set_sigmoid(source, output)
        np.multiply(output, source, out=output)

    return run


def bind_silu_grad(call: Call) -> Bound:
    """Return dy * s * (1 + x * (1 - s)), with s = sigmoid(x)."""
    tiles, buffer = _tiles(call), ScratchCutter(call).take((_tile(call),), call.inputs[0].dtype)

    def run() -> None:
        for gradient, x, output in tiles:
            work = buffer[: x.size]
            _set_sigmoid(x, output)
            np.subtract(1, output, out=work)
            np.multiply(work, x, out=work)
            np.add(work, 1, out=work)
            np.multiply(output, work, out=output)
            np.multiply(output, gradient, out=output)

    return run


def bind_hswish(call: Call) -> Bound:
    """Return x * clip(x + 3, 0, 6) / 6."""
    (source,), (output,) = call.inputs, call.outputs
    zero, six = source.dtype.type(0), source.dtype.type(6)

    def run() -> None:
        np.add(source, 3, out=output)
        np.clip(output, zero, six, out=output)
        np.multiply(output, source, out=output)
        np.divide(output, six, out=output)

    return run


def bind_hswish_grad(call: Call) -> Bound:
    """Return dy times 0 below -3, 1 above 3, and x / 3 + 1 / 2 between."""
    tiles, buffer = _tiles(call), ScratchCutter(call).take((_tile(call),), np.bool_)

    def run() -> None:
        for gradient, x, output in tiles:
            outside = buffer[: x.size]
            np.divide(x, 3, out=output)
            np.add(output, 0.5, out=output)
            np.less_equal(x, -3, out=outside)
            np.copyto(output, 0, where=outside)
            np.greater_equal(x, 3, out=outside)
            np.copyto(output, 1, where=outside)
            np.multiply(output, gradient, out=output)

    return run


KERNELS = {
    "sigmoid": bind_sigmoid,
    "sigmoid_grad": bind_sigmoid_grad,
    "tanh": bind_tanh,
    "tanh_grad": bind_tanh_grad,
    "silu": bind_silu,
    "silu_grad": bind_silu_grad,
    "hswish": bind_hswish,
    "hswish_grad": bind_hswish_grad,
}
