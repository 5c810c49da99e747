"""Norms of channels of images as their shapes say: whoever has a channel goes over all samples."""

import numpy as np

from hedgerow_agent.core.kernels.call import Array, Call
from hedgerow_agent.core.native.draft import Draft, Drafts
from hedgerow_plans.graph.ops.batch_norm import is_batch

_EPSILON = 1e-5


def _draft(op: str, operands: tuple[Array | None, ...], x: Array, passes: int, epsilon: float) -> Draft:
    sizes = (len(x), x.shape[1], x.size // x.shape[1] // len(x))
    return Draft(op, operands, sizes, x.shape[1], passes * x.size, (epsilon,))


def _factors(call: Call, channels: int) -> Array:
    """Return one float of scratch for each channel: the last ones, so that a measurement finds what was planned."""
    return call.scratch[call.scratch.size - 4 * channels :].view(np.float32)


def forward(call: Call) -> Drafts:
    """Return x normalised, with its own or with running statistics."""
    x, weight, bias, *running = call.inputs
    epsilon, factors = call.number("epsilon", _EPSILON), _factors(call, weight.size)
    if not is_batch(call.node):
        return (_draft("runs_stretch", (x, weight, bias, *running, factors, call.outputs[0]), x, 2, epsilon),)
    statistics = call.outputs[1] if len(call.outputs) > 1 else call.scratch[: 8 * weight.size].view(np.float32)
    return (_draft("runs_norm", (x, weight, bias, statistics, factors, call.outputs[0]), x, 4, epsilon),)


def grad_input(call: Call) -> Drafts:
    """Return dx."""
    epsilon = call.number("epsilon", _EPSILON)
    if not is_batch(call.node):
        gradient, variance, weight = call.inputs
        stretched = (gradient, weight, None, None, variance, _factors(call, weight.size), call.outputs[0])
        return (_draft("runs_stretch", stretched, gradient, 2, epsilon),)
    gradient, x, statistics, weight, *sums = call.inputs
    known = sums or (None, None)
    operands = (gradient, x, statistics, weight, *known, _factors(call, weight.size), call.outputs[0])
    return (_draft("runs_norm_grad", operands, x, 4, epsilon),)


def grad_weight(call: Call) -> Drafts:
    """Return the sum of dy * (x - mean) / deviation."""
    (gradient, x, *statistics), (output,) = call.inputs, call.outputs
    mean, variance = statistics[0] if is_batch(call.node) else statistics
    operands = (gradient, x, mean, variance, _factors(call, output.size), output)
    return (_draft("runs_norm_grad_weight", operands, x, 2, call.number("epsilon", _EPSILON)),)
