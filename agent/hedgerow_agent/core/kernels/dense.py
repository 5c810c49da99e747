"""Kernels of the fully connected layer and of biases: matrix products."""

from collections.abc import Callable

import numpy as np

from hedgerow_agent.core.blas import find_blas
from hedgerow_agent.core.kernels.by_pixels.rows import bind_channel_sums
from hedgerow_agent.core.kernels.call import Array, Bound, Call
from hedgerow_agent.core.kernels.ones import ones
from hedgerow_plans.graph.ir import Order
from hedgerow_plans.graph.tiles import UPDATE_TILE_ELEMENTS, rows_per_tile


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
    gradient, x = call.inputs
    first, second, output = _by_rows(_rows(gradient), _rows(x), call.outputs[0])
    return lambda: np.matmul(first, second, out=output)


def _by_rows(gradient: Array, x: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Return dy', x and the weight; if that lies by inputs, x', dy and its transpose, which lies by rows."""
    return (gradient.T, x, weight) if weight.flags.c_contiguous else (x.T, gradient, weight.T)


def bind_sgd_linear(call: Call) -> Bound:
    """Subtract rate dy' x from a weight: in one call of BLAS, or some of its rows at a time where that is not known."""
    gradient, x = call.inputs
    taking, runtime = _taking(*_by_rows(_rows(gradient), _rows(x), call.updates[0])), call.runtime
    return lambda: taking(runtime.learning_rate)


def _taking(first: Array, second: Array, total: Array) -> Callable[[float], object]:
    blas = find_blas()
    return (blas and blas.taking(first, second, total)) or _taking_rows(first, second, total)


def _taking_rows(first: Array, second: Array, total: Array) -> Callable[[float], object]:
    """Return the same by numpy, which cannot add to what is there: a few rows of the product lie beside the arena."""
    rows, width = total.shape
    tile = rows_per_tile(rows, width, UPDATE_TILE_ELEMENTS)
    product = np.empty((tile, width), total.dtype)
    parts = [slice(row, row + tile) for row in range(0, rows, tile)]
    tiles = [(first[part], product[: len(total[part])], total[part]) for part in parts]

    def take(rate: float) -> None:
        for part, step, values in tiles:
            np.matmul(part, second, out=step)
            np.multiply(step, rate, out=step)
            np.subtract(values, step, out=values)

    return take


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
