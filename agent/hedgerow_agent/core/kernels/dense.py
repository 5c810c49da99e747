"""Kernels of the fully connected layer and of biases: one matrix product each, no scratch."""

import numpy as np

from hedgerow_agent.core.kernels.call import Bound, Call


def bind_linear(call: Call) -> Bound:
    """Return x w' + b."""
    source, weight = call.inputs[:2]
    (output,) = call.outputs
    transposed = weight.T
    if len(call.inputs) == 2:
        return lambda: np.matmul(source, transposed, out=output)
    bias = call.inputs[2]

    def run() -> None:
        np.matmul(source, transposed, out=output)
        np.add(output, bias, out=output)

    return run


def bind_linear_grad_input(call: Call) -> Bound:
    """Return dy w."""
    (gradient, weight), (output,) = call.inputs, call.outputs
    return lambda: np.matmul(gradient, weight, out=output)


def bind_linear_grad_weight(call: Call) -> Bound:
    """Return dy' x, summed over the micro-batch."""
    (gradient, source), (output,) = call.inputs, call.outputs
    transposed = gradient.T
    return lambda: np.matmul(transposed, source, out=output)


def bind_bias_grad(call: Call) -> Bound:
    """Sum the gradient over the batch and, for images, over the pixels."""
    (gradient,), (output,) = call.inputs, call.outputs
    axes = (0, *range(2, gradient.ndim))
    return lambda: np.add.reduce(gradient, axis=axes, out=output)


KERNELS = {
    "linear": bind_linear,
    "linear_grad_input": bind_linear_grad_input,
    "linear_grad_weight": bind_linear_grad_weight,
    "bias_grad": bind_bias_grad,
}
