"""Softmax over the last axis, and multi-head attention as one operator.

Attention is not written as matmul, softmax, matmul, because then scores and probabilities of all heads would be live
together, three of them in the backward pass. Fused, only the probabilities are saved (they are needed anyway) and
everything else of their size is scratch of a few heads. The price: the gradients of queries and keys both compute the
scores' gradient.
"""

import math

from hedgerow_plans.graph.ir import Node, Tensor
from hedgerow_plans.graph.operator import AttributeRule, Backward, Call, Kind, Operator, describe
from hedgerow_plans.graph.ops import expect
from hedgerow_plans.graph.tiles import ATTENTION_TILE_ELEMENTS, channels_per_tile

_HEADS = {"heads": AttributeRule(Kind.INTEGER)}
SOFTMAX_FLOPS = 5
"""Largest, difference, exponential, sum and quotient of each element."""

_SOFTMAX_GRAD_FLOPS = 4


def _infer_softmax(call: Call) -> tuple[Tensor, ...]:
    x = expect.values(call, call.inputs[0])
    call.require(x.shape != (), f"{x.name!r} is one number per sample; give it at least one axis")
    return (call.output(0, x.shape, batched=x.batched),)


def _infer_softmax_grad(call: Call) -> tuple[Tensor, ...]:
    gradient, y = (expect.values(call, tensor) for tensor in call.inputs)
    expect.alike(call, gradient, y)
    return (call.output(0, y.shape, batched=y.batched),)


def _row_bytes(call: Call) -> int:
    """Return one number for each row of the last axis."""
    return 4 * call.samples(call.inputs[0]) // call.inputs[0].shape[-1]


def _check_heads(call: Call, queries: Tensor, keys: Tensor, values: Tensor) -> None:
    shapes = ", ".join(describe(tensor.shape) for tensor in (queries, keys, values))
    together = keys.shape[0] == values.shape[0] and queries.shape[1] == keys.shape[1]
    problem = f"queries, keys and values have shapes {shapes}; queries and keys share the width, keys and values the"
    call.require(together, f"{problem} tokens")
    heads = call.integer("heads")
    whole = queries.shape[1] % heads == 0 and values.shape[1] % heads == 0
    call.require(whole, f"widths of {shapes} cannot be split into {heads} heads; choose a divisor")


def _infer_attention(call: Call) -> tuple[Tensor, ...]:
    queries, keys, values = (expect.samples(call, tensor, rank=2) for tensor in call.inputs)
    _check_heads(call, queries, keys, values)
    y = call.output(0, (queries.shape[0], values.shape[1]))
    probabilities = (call.integer("heads"), queries.shape[0], keys.shape[0])
    return (y, call.output(1, probabilities)) if len(call.node.outputs) > 1 else (y,)


def _scores(call: Call, queries: Tensor, keys: Tensor) -> int:
    """Return how many scores all heads of a micro-batch have."""
    return call.micro_batch * call.integer("heads") * queries.shape[0] * keys.shape[0]


def _attention_flops(call: Call) -> int:
    queries, keys, values = call.inputs
    head_widths = (queries.shape[1] + values.shape[1]) // call.integer("heads")
    # both products, the scale of each score, the softmax
    return _scores(call, queries, keys) * (2 * head_widths + 1 + SOFTMAX_FLOPS)


def _tile_queries(call: Call, heads: int, queries: int, keys: int) -> int:
    """Return how many queries the heads of one tile have."""
    return queries * math.prod(channels_per_tile(call.micro_batch, heads, queries * keys, ATTENTION_TILE_ELEMENTS))


def _attention_scratch(call: Call) -> int:
    """Return a number for each query of a tile and, unless they are an output, its probabilities."""
    queries, keys = call.inputs[0].shape[0], call.inputs[1].shape[0]
    rows = _tile_queries(call, call.integer("heads"), queries, keys)
    return 4 * rows * (1 if len(call.outputs) > 1 else 1 + keys)


def _infer_grad_scores(call: Call) -> tuple[Tensor, ...]:
    """Return the gradient of queries or keys; inputs are dy, probabilities, values, and the other one of the two."""
    gradient, values, other = (expect.samples(call, call.inputs[at], rank=2) for at in (0, 2, 3))
    probabilities = expect.samples(call, call.inputs[1], rank=3)
    _, queries, keys = probabilities.shape
    of_queries = call.attributes["of"] == "queries"
    expect.shape(call, gradient, (queries, values.shape[1]))
    expect.shape(call, values, (keys, values.shape[1]))
    expect.shape(call, other, (keys if of_queries else queries, other.shape[1]))
    problem = f"widths of {other.name!r} and {values.name!r} cannot be split into {probabilities.shape[0]} heads"
    heads = probabilities.shape[0]
    call.require(other.shape[1] % heads == 0 and values.shape[1] % heads == 0, f"{problem}; choose a divisor")
    return (call.output(0, (queries if of_queries else keys, other.shape[1])),)


def _grad_scores_flops(call: Call) -> int:
    heads = call.inputs[1].shape[0]
    head_widths = (call.inputs[2].shape[1] + call.inputs[3].shape[1]) // heads
    return call.samples(call.inputs[1]) * (2 * head_widths + 1 + _SOFTMAX_GRAD_FLOPS)


def _grad_scores_scratch(call: Call) -> int:
    """Return a tile's gradient of the scores, and a number for each query."""
    heads, queries, keys = call.inputs[1].shape
    return 4 * _tile_queries(call, heads, queries, keys) * (keys + 1)


def _infer_grad_values(call: Call) -> tuple[Tensor, ...]:
    gradient = expect.samples(call, call.inputs[0], rank=2)
    heads, queries, keys = expect.samples(call, call.inputs[1], rank=3).shape
    expect.shape(call, gradient, (queries, gradient.shape[1]))
    call.require(gradient.shape[1] % heads == 0, f"{gradient.shape[1]} columns cannot be split into {heads} heads")
    return (call.output(0, (keys, gradient.shape[1])),)


def _grad_softmax(ask: Backward) -> Node:
    return ask.call("softmax_grad", (ask.gradient, ask.node.outputs[0]))


def _grad_queries(ask: Backward) -> Node:
    _, keys, values = ask.node.inputs
    return ask.call("attention_grad_scores", (ask.gradient, ask.node.outputs[1], values, keys), {"of": "queries"})


def _grad_keys(ask: Backward) -> Node:
    queries, _, values = ask.node.inputs
    return ask.call("attention_grad_scores", (ask.gradient, ask.node.outputs[1], values, queries), {"of": "keys"})


def _grad_values(ask: Backward) -> Node:
    return ask.call("attention_grad_values", (ask.gradient, ask.node.outputs[1]))


OPERATORS = (
    Operator(
        "softmax",
        _infer_softmax,
        flops=lambda call: SOFTMAX_FLOPS * call.samples(call.inputs[0]),
        scratch_bytes=_row_bytes,
        backward=(_grad_softmax,),
    ),
    Operator(
        "softmax_grad",
        _infer_softmax_grad,
        inputs=(2, 2),
        flops=lambda call: _SOFTMAX_GRAD_FLOPS * call.samples(call.inputs[0]),
        scratch_bytes=_row_bytes,
    ),
    Operator(
        "multi_head_attention",
        _infer_attention,
        inputs=(3, 3),
        outputs=(1, 2),
        attributes=_HEADS,
        flops=_attention_flops,
        scratch_bytes=_attention_scratch,
        backward=(_grad_queries, _grad_keys, _grad_values),
        saved="probabilities",
    ),
    Operator(
        "attention_grad_scores",
        _infer_grad_scores,
        inputs=(4, 4),
        attributes={"of": AttributeRule(Kind.TEXT, choices=("queries", "keys"))},
        flops=_grad_scores_flops,
        scratch_bytes=_grad_scores_scratch,
    ),
    Operator(
        "attention_grad_values",
        _infer_grad_values,
        inputs=(2, 2),
        flops=lambda call: 2 * call.samples(call.inputs[1]) * call.inputs[0].shape[1] // call.inputs[1].shape[0],
    ),
)
