"""The kernel of gelu, the exact one: x F(x), with F the normal distribution function.

In 32 bits, what lies beyond |x| is t P(t) exp(-x^2 / 2) with t = 1 / (1 + c |x|), the form of Abramowitz and Stegun
(7.1.26), with P fitted so that x times it is off by less than 1e-7. What the backward pass reads is the slope itself:
it is made while F and the exponential are at hand, so that the gradient is one product.
"""

import math
from collections.abc import Callable

import numpy as np

from hedgerow_agent.core.kernels.call import Array, Bound, Call, ScratchCutter
from hedgerow_plans.graph.tiles import GELU_TILE_ELEMENTS, tile_of

_SLOWNESS = 0.335
_FIRST, *_OTHERS = (-0.108075549, 0.352944255, -0.0651215797, 0.194560303, 0.125692498)
"""c, and P by falling powers."""

_SIGN_BIT = np.int32(-(2**31))
_DENSITY_AT_ZERO = 1 / math.sqrt(2 * math.pi)
_error_function = np.frompyfunc(math.erf, 1, 1)


def _set_exponential(x: Array, exponential: Array) -> None:
    """Set exp(-x^2 / 2)."""
    np.multiply(x, x, out=exponential)
    np.multiply(exponential, -0.5, out=exponential)
    np.exp(exponential, out=exponential)


def _set_tail(x: Array, result: Array, work: Array) -> None:
    """Set F(-|x|) and, where it worked, exp(-x^2 / 2)."""
    np.abs(x, out=work)
    np.multiply(work, _SLOWNESS, out=work)
    np.add(work, 1, out=work)
    np.reciprocal(work, out=work)
    np.multiply(work, _FIRST, out=result)
    for coefficient in _OTHERS:
        np.add(result, coefficient, out=result)
        np.multiply(result, work, out=result)
    _set_exponential(x, work)
    np.multiply(result, work, out=result)


def _set_distribution(x: Array, result: Array, exponential: Array, spare: Array) -> None:
    """Set F(x) and exp(-x^2 / 2); the latter is lost if it is the spare place too."""
    _set_tail(x, result, exponential)
    np.subtract(0.5, result, out=result)
    # copysign, which numpy does six times slower
    bits, signs = result.view(np.int32), spare.view(np.int32)
    np.bitwise_and(x.view(np.int32), _SIGN_BIT, out=signs)
    np.bitwise_or(bits, signs, out=bits)
    np.add(result, 0.5, out=result)


def _set_distribution_of_64_bits(x: Array, result: Array, exponential: Array, _spare: Array) -> None:
    """Set the same for checks of gradients, which want every bit and can wait."""
    np.copyto(result, _error_function(x / math.sqrt(2)), casting="unsafe")
    np.multiply(result, 0.5, out=result)
    np.add(result, 0.5, out=result)
    _set_exponential(x, exponential)


def _set_slope(x: Array, distribution: Array, exponential: Array, slope: Array) -> None:
    """Set F(x) + x f(x), with f the normal density."""
    np.multiply(exponential, _DENSITY_AT_ZERO, out=exponential)
    np.multiply(exponential, x, out=exponential)
    np.add(exponential, distribution, out=slope)


def bind_gelu(call: Call) -> Bound:
    """Return x F(x) and, if asked for, its slope."""
    arrays = [array.reshape(-1) for array in (*call.inputs, *call.outputs)]
    size, dtype = arrays[0].size, arrays[0].dtype
    tile = tile_of(size, GELU_TILE_ELEMENTS)
    buffer = ScratchCutter(call).take((tile,), dtype)
    tiles = [tuple(array[first : first + tile] for array in arrays) for first in range(0, size, tile)]
    distribute: Callable[[Array, Array, Array, Array], None]
    distribute = _set_distribution if dtype == np.float32 else _set_distribution_of_64_bits

    def run() -> None:
        for x, y, *slopes in tiles:
            work = buffer[: x.size]
            distribute(x, y, work, slopes[0] if slopes else work)
            if slopes:
                _set_slope(x, y, work, slopes[0])
            np.multiply(y, x, out=y)

    return run


KERNELS = {"gelu": bind_gelu}
