"""Kernels of clipping: the norm of all gradients, its factor, and gradients as clipping updates read them."""

import math
from collections.abc import Callable

import numpy as np

from hedgerow_agent.core.kernels.call import Array, Bound, Call, ScratchCutter

GradientOf = Callable[[slice], Array]
"""Gives a part of a flat gradient; a clipped one is valid until the next is asked for."""


def clipped_gradient(call: Call, factor: int, scratch: ScratchCutter, tile: int) -> GradientOf:
    """Return how an update reads its gradient: as it is, or clipped into a tile of scratch."""
    gradient, limit = call.inputs[0].reshape(-1), call.number("clip", 0.0)
    if not limit and len(call.inputs) <= factor:
        return gradient.__getitem__
    buffer = scratch.take((tile,), gradient.dtype)
    if limit:
        return lambda part: np.clip(gradient[part], -limit, limit, out=buffer[: len(gradient[part])])
    scale = call.inputs[factor]
    return lambda part: np.multiply(gradient[part], scale, out=buffer[: len(gradient[part])])


def bind_sum_squares(call: Call) -> Bound:
    """Return the sum of a gradient's squares, and of the sum so far if there is one."""
    gradient, (total,) = call.inputs[0].reshape(-1), call.outputs
    if len(call.inputs) == 1:
        return lambda: np.dot(gradient, gradient, out=total)
    before = call.inputs[1]

    def run() -> None:
        np.dot(gradient, gradient, out=total)
        np.add(total, before, out=total)

    return run


def bind_clip_factor(call: Call) -> Bound:
    """Return limit / norm, or 1 where the norm is within the limit."""
    (squares,), (factor,) = call.inputs, call.outputs
    limit = call.number("limit", 1.0)

    def run() -> None:
        norm = math.sqrt(squares) if squares >= 0 else math.nan
        factor[...] = limit / norm if norm > limit else 1.0 if norm <= limit else math.nan

    return run


KERNELS = {"sum_squares": bind_sum_squares, "clip_factor": bind_clip_factor}
