"""Kernels of the fully connected layer and of biases: matrix products."""

import numpy as np

from hedgerow_agent.core.kernels.by_pixels.rows import bind_channel_sums
from hedgerow_agent.core.kernels.call import Array, Bound, Call
from hedgerow_agent.core.kernels.ones import ones
from hedgerow_agent.core.kernels.sinks import Descent, Gradient, Sink
from hedgerow_plans.graph.ir import Order


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
    return _bind_weight(call, call.outputs[0], Gradient())


def bind_sgd_linear(call: Call) -> Bound:
    """Subtract rate dy' x from a weight."""
    return _bind_weight(call, call.updates[0], Descent(call.runtime))


def _bind_weight(call: Call, weight: Array, sink: Sink) -> Bound:
    gradient, x = map(_rows, call.inputs)
    return sink.product((gradient.T, x), weight)


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
