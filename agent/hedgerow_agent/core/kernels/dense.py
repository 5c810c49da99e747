"""Kernels of the fully connected layer and of biases: matrix products."""

import numpy as np

from hedgerow_agent.core.kernels.by_pixels.rows import bind_channel_sums
from hedgerow_agent.core.kernels.call import Array, Bound, Call, ScratchCutter
from hedgerow_agent.core.kernels.ones import ones
from hedgerow_plans.graph.ir import Order
from hedgerow_plans.graph.ops.dense import scaled_input
from hedgerow_plans.graph.tiles import LAYER_UPDATE_TILE_ELEMENTS, rows_per_tile


def _rows(values: Array) -> Array:
    """Return one vector a row: all tokens of all samples, so that a whole micro-batch is one product."""
    return values.reshape(-1, values.shape[-1])


def bind_linear(call: Call) -> Bound:
    """Return x w' + b."""
    source, output = _rows(call.inputs[0]), _rows(call.outputs[0])
    transposed = call.inputs[1].T
    if len(call.inputs) == 2:
        return lambda: np.matmul(source, transposed, out=output)
    bias = call.inputs[2]

    def run() -> None:
        np.matmul(source, transposed, out=output)
        np.add(output, bias, out=output)

    return run


def bind_linear_grad_input(call: Call) -> Bound:
    """Return dy w."""
    weight = call.inputs[1]
    gradient, output = _rows(call.inputs[0]), _rows(call.outputs[0])
    return lambda: np.matmul(gradient, weight, out=output)


def bind_linear_grad_weight(call: Call) -> Bound:
    """Return dy' x, summed over the micro-batch and, for sequences, over the tokens."""
    source, (output,) = _rows(call.inputs[1]), call.outputs
    transposed = _rows(call.inputs[0]).T
    return lambda: np.matmul(transposed, source, out=output)


def bind_sgd_linear(call: Call) -> Bound:
    """Subtract rate dy' x from a weight, some of its rows at a time; what has the fewest numbers is multiplied."""
    factors, (weight,) = [_rows(array) for array in call.inputs], call.updates
    scratch, runtime = ScratchCutter(call), call.runtime
    outputs, features = weight.shape
    tile = rows_per_tile(outputs, features, LAYER_UPDATE_TILE_ELEMENTS)
    product = scratch.take((tile, features), weight.dtype)
    scaled = scaled_input(len(factors[0]), outputs, features)
    given = product
    if scaled is not None:
        given = factors[scaled]
        factors[scaled] = scratch.take(given.shape, weight.dtype)
    transposed, x = factors[0].T, factors[1]
    rows = [slice(first, first + tile) for first in range(0, outputs, tile)]
    tiles = [(transposed[part], product[: len(weight[part])], weight[part]) for part in rows]

    def run() -> None:
        rate = runtime.learning_rate
        if scaled is not None:
            np.multiply(given, rate, out=factors[scaled])
        for gradient, step, values in tiles:
            np.matmul(gradient, x, out=step)
            if scaled is None:
                np.multiply(step, rate, out=step)
            np.subtract(values, step, out=values)

    return run


def bind_bias_grad(call: Call) -> Bound:
    """Sum the gradient over the batch and over pixels or tokens."""
    if call.order is not Order.SAMPLES:
        return bind_channel_sums(call)
    (gradient,), (output,) = call.inputs, call.outputs
    first = call.node.attributes.get("channels", "first") == "first"
    if first and gradient.ndim > 2:
        return lambda: np.add.reduce(gradient, axis=(0, *range(2, gradient.ndim)), out=output)
    rows = _rows(gradient)
    each = ones(len(rows), rows.dtype)
    return lambda: np.matmul(each, rows, out=output)


KERNELS = {
    "linear": bind_linear,
    "linear_grad_input": bind_linear_grad_input,
    "linear_grad_weight": bind_linear_grad_weight,
    "sgd_linear": bind_sgd_linear,
    "bias_grad": bind_bias_grad,
}
