"""Norms over rows, and softmax."""

from hedgerow_agent.core.kernels.call import Call
from hedgerow_agent.core.native.draft import Block, Draft, Drafts
from hedgerow_agent.core.native.encoders.dense import column_sums

_EPSILON = 1e-5


def _norm(call: Call, numbers: int) -> Drafts:
    x, weight, *bias = call.inputs
    sizes = (x.size // weight.size, weight.size, numbers)
    saved = call.outputs[1] if len(call.outputs) > 1 else None
    operands = (x, weight, bias[0] if bias else None, call.outputs[0], saved)
    return (Draft("row_norm", operands, sizes, sizes[0], 3 * x.size, (call.number("epsilon", _EPSILON),)),)


def _layer_norm(call: Call, _block: Block) -> Drafts:
    return _norm(call, 2)


def _rms_norm(call: Call, _block: Block) -> Drafts:
    return _norm(call, 1)


def _grad_input(call: Call, _block: Block) -> Drafts:
    gradient, x, statistics, weight = call.inputs
    rows = x.size // weight.size
    sizes = (rows, weight.size, statistics.size // rows)
    operands = (gradient, x, statistics, weight, *call.outputs)
    return (Draft("row_norm_grad", operands, sizes, rows, 4 * x.size),)


def _grad_weight(call: Call, _block: Block) -> Drafts:
    (gradient, x, statistics), (output,) = call.inputs, call.outputs
    rows = x.size // output.size
    sizes = (rows, output.size, statistics.size // rows)
    operands = (gradient, x, statistics, output)
    return (Draft("row_norm_grad_weight", operands, sizes, output.size, 2 * x.size, grain=16),)


def _sum_rows(call: Call, _block: Block) -> Drafts:
    return (column_sums(call.inputs[0], call.outputs[0]),)


def _softmax(call: Call, _block: Block) -> Drafts:
    x = call.inputs[0]
    sizes = (x.size // x.shape[-1], x.shape[-1])
    return (Draft("softmax", (x, *call.outputs), sizes, sizes[0], 8 * x.size),)


def _softmax_grad(call: Call, _block: Block) -> Drafts:
    x = call.inputs[0]
    sizes = (x.size // x.shape[-1], x.shape[-1])
    return (Draft("softmax_grad", (*call.inputs, *call.outputs), sizes, sizes[0], 3 * x.size),)


ENCODERS = {
    "layer_norm": _layer_norm,
    "layer_norm_grad_input": _grad_input,
    "layer_norm_grad_weight": _grad_weight,
    "layer_norm_grad_bias": _sum_rows,
    "sum_to": _sum_rows,
    "rms_norm": _rms_norm,
    "rms_norm_grad_input": _grad_input,
    "rms_norm_grad_weight": _grad_weight,
    "softmax": _softmax,
    "softmax_grad": _softmax_grad,
}
