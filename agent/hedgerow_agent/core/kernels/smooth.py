"""Kernels of activations that are no rectifiers: sigmoid, tanh, silu, hard swish and gelu.

Gelu is the exact one, x times the normal distribution function. Its error function is one Chebyshev series for all
arguments: erfc(z) = t exp(P(2t - 1) - z^2) with t = 1 / (1 + z / 2) (Press et al., Numerical Recipes, 6.2).
"""

from collections.abc import Callable

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


# fmt: off
_SERIES = (
    -1.3026537197817094, 6.4196979235649026e-1, 1.9476473204185836e-2, -9.561514786808631e-3,
    -9.46595344482036e-4, 3.66839497852761e-4, 4.2523324806907e-5, -2.0278578112534e-5,
    -1.624290004647e-6, 1.303655835580e-6, 1.5626441722e-8, -8.5238095915e-8, 6.529054439e-9,
    5.059343495e-9, -9.91364156e-10, -2.27365122e-10, 9.6467911e-11, 2.394038e-12, -6.886027e-12,
    8.94487e-13, 3.13092e-13, -1.12708e-13, 3.81e-16, 7.106e-15, -1.523e-15, -9.4e-17, 1.21e-16,
    -2.8e-17,
)
# fmt: on
"""Chebyshev coefficients; the first counts half. Those of degree 14 and up are below what 32 bits can show."""

_TERMS_OF_32_BITS = 14


def _polynomial(dtype: np.dtype[np.generic]) -> list[float]:
    """Return the coefficients by falling powers, as many as the float type can show."""
    terms = _SERIES if dtype == np.float64 else _SERIES[:_TERMS_OF_32_BITS]
    powers = np.polynomial.chebyshev.cheb2poly((terms[0] / 2, *terms[1:]))
    return [float(value) for value in powers[::-1]]


Distribution = Callable[[Array, Array, Array, Array], None]


def _distribution(dtype: np.dtype[np.generic]) -> Distribution:
    """Return the call that sets `result` to the normal distribution function of x, by way of two buffers."""
    first, *others = _polynomial(dtype)
    root = float(np.sqrt(2))

    def run(x: Array, result: Array, work: Array, rest: Array) -> None:
        np.abs(x, out=rest)
        np.divide(rest, root, out=rest)  # z
        np.divide(rest, 2, out=work)
        np.add(work, 1, out=work)
        np.reciprocal(work, out=work)  # t
        np.multiply(rest, rest, out=rest)
        np.multiply(work, 2, out=work)
        np.subtract(work, 1, out=work)  # 2t - 1
        result.fill(first)
        for coefficient in others:
            np.multiply(result, work, out=result)
            np.add(result, coefficient, out=result)
        np.subtract(result, rest, out=result)
        np.exp(result, out=result)
        np.add(work, 1, out=work)
        np.multiply(result, work, out=result)
        np.divide(result, 4, out=result)  # half of erfc(z): what lies beyond |x|
        np.subtract(0.5, result, out=result)
        np.copysign(result, x, out=result)
        np.add(result, 0.5, out=result)

    return run


def _two_buffers(call: Call) -> tuple[Array, Array]:
    scratch = ScratchCutter(call)
    return scratch.take((_tile(call),), call.inputs[0].dtype), scratch.take((_tile(call),), call.inputs[0].dtype)


def bind_gelu(call: Call) -> Bound:
    """Return x * F(x), with F the normal distribution function."""
    tiles, (first, second), distribution = _tiles(call), _two_buffers(call), _distribution(call.inputs[0].dtype)

    def run() -> None:
        for x, output in tiles:
            distribution(x, output, first[: x.size], second[: x.size])
            np.multiply(output, x, out=output)

    return run


def bind_gelu_grad(call: Call) -> Bound:
    """Return dy * (F(x) + x * f(x)), with f the normal density."""
    tiles, (first, second), distribution = _tiles(call), _two_buffers(call), _distribution(call.inputs[0].dtype)
    height = float(1 / np.sqrt(2 * np.pi))

    def run() -> None:
        for gradient, x, output in tiles:
            density = first[: x.size]
            distribution(x, output, density, second[: x.size])
            np.multiply(x, x, out=density)
            np.divide(density, -2, out=density)
            np.exp(density, out=density)
            np.multiply(density, height, out=density)
            np.multiply(density, x, out=density)
            np.add(output, density, out=output)
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
    "gelu": bind_gelu,
    "gelu_grad": bind_gelu_grad,
}
