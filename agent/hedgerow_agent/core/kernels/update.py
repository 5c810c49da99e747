"""Kernels that change tensors in place: gradient accumulators and the optimiser's update."""

import numpy as np

from hedgerow_agent.core.kernels.call import Bound, Call, ScratchCutter
from hedgerow_agent.core.kernels.clipping import clipped_gradient
from hedgerow_plans.graph.tiles import UPDATE_TILE_ELEMENTS, tile_of


def bind_zero(call: Call) -> Bound:
    """Start an accumulator at zero."""
    (output,) = call.outputs
    return lambda: output.fill(0)


def bind_accumulate(call: Call) -> Bound:
    """Add a gradient to its accumulator."""
    (gradient,), (total,) = call.inputs, call.updates

    def run() -> None:
        np.add(total, gradient, out=total)

    return run


def bind_sgd(call: Call) -> Bound:
    """Update a parameter: v = momentum v + g + decay p; p -= rate v. Without a velocity, v is the gradient alone."""
    arrays = [array.reshape(-1) for array in call.updates]
    momentum, decay = call.number("momentum", 0.0), call.number("weight_decay", 0.0)
    size = arrays[0].size
    tile = tile_of(size, UPDATE_TILE_ELEMENTS)
    scratch, runtime = ScratchCutter(call), call.runtime
    buffer, gradient = scratch.take((tile,), arrays[0].dtype), clipped_gradient(call, 1, scratch, tile)
    # cut once, because a step of a small network is mostly such calls
    parts = [slice(first, min(first + tile, size)) for first in range(0, size, tile)]
    pieces = [(part, [buffer[: part.stop - part.start], *(array[part] for array in arrays)]) for part in parts]

    def run() -> None:
        rate = runtime.learning_rate
        for part, (work, values, *speeds) in pieces:
            direction = gradient(part)
            if decay:
                np.multiply(values, decay, out=work)
                np.add(work, direction, out=work)
                direction = work
            for speed in speeds:
                np.multiply(speed, momentum, out=speed)
                np.add(speed, direction, out=speed)
                direction = speed
            np.multiply(direction, rate, out=work)
            np.subtract(values, work, out=values)

    return run


KERNELS = {"zero": bind_zero, "accumulate": bind_accumulate, "sgd": bind_sgd}
