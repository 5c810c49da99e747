"""Rows of a table chosen by tokens, and parameters added to every sample (positions, kinds of tokens).

Plain SGD changes only the rows that were chosen, so that the table's whole gradient need never exist (`sgd_rows`).
"""

from hedgerow_plans.graph.ir import DType, Node, Tensor
from hedgerow_plans.graph.operator import AttributeRule, Backward, Call, Kind, Operator, Shape, describe
from hedgerow_plans.graph.ops import expect
from hedgerow_plans.graph.tiles import UPDATE_TILE_ELEMENTS, rows_per_tile


def _infer_embedding(call: Call) -> tuple[Tensor, ...]:
    tokens = expect.samples(call, call.inputs[0], rank=1, dtype=DType.INT32)
    table = expect.parameter(call, call.inputs[1], rank=2)
    return (call.output(0, (*tokens.shape, table.shape[1])),)


def _infer_embedding_grad(call: Call) -> tuple[Tensor, ...]:
    gradient = expect.samples(call, call.inputs[0], rank=2)
    tokens = expect.samples(call, call.inputs[1], rank=1, dtype=DType.INT32)
    expect.shape(call, gradient, (*tokens.shape, gradient.shape[1]))
    return (call.output(0, (call.integer("rows"), gradient.shape[1]), batched=False),)


def _infer_sgd_rows(call: Call) -> tuple[Tensor, ...]:
    gradient = expect.samples(call, call.inputs[0], rank=2)
    tokens = expect.samples(call, call.inputs[1], rank=1, dtype=DType.INT32)
    table = expect.trainable(call, expect.parameter(call, call.updates[0], rank=2))
    expect.shape(call, gradient, (*tokens.shape, table.shape[1]))
    return ()


def _sgd_rows_scratch(call: Call) -> int:
    """Return a tile of gradients times the rate."""
    width = call.inputs[0].shape[-1]
    return 4 * width * rows_per_tile(call.samples(call.inputs[1]), width, UPDATE_TILE_ELEMENTS)


def _check_tail(call: Call, x: Tensor, tail: Shape) -> None:
    problem = f"{describe(tail)} are not the last axes of {x.name!r}, shape {describe(x.shape)}"
    call.require(x.shape[len(x.shape) - len(tail) :] == tail, f"{problem}; give it one number for each of those")


def _infer_add_parameter(call: Call) -> tuple[Tensor, ...]:
    x, added = expect.samples(call, call.inputs[0]), expect.parameter(call, call.inputs[1], len(call.inputs[1].shape))
    _check_tail(call, x, added.shape)
    return (call.output(0, x.shape),)


def _infer_sum_to(call: Call) -> tuple[Tensor, ...]:
    _check_tail(call, expect.samples(call, call.inputs[0]), call.shape())
    return (call.output(0, call.shape(), batched=False),)


def _grad_table(ask: Backward) -> Node:
    return ask.call("embedding_grad", (ask.gradient, ask.node.inputs[0]), {"rows": ask.input(1).shape[0]})


def _grad_added(ask: Backward) -> Node:
    return ask.call("sum_to", (ask.gradient,), {"shape": ask.input(1).shape})


OPERATORS = (
    Operator("embedding", _infer_embedding, inputs=(2, 2), backward=(None, _grad_table)),
    Operator(
        "embedding_grad",
        _infer_embedding_grad,
        inputs=(2, 2),
        attributes={"rows": AttributeRule(Kind.INTEGER)},
        flops=lambda call: call.samples(call.inputs[0]),
    ),
    Operator(
        "sgd_rows",
        _infer_sgd_rows,
        inputs=(2, 2),
        outputs=(0, 0),
        updates=(1, 1),
        flops=lambda call: 2 * call.samples(call.inputs[0]),
        scratch_bytes=_sgd_rows_scratch,
    ),
    Operator(
        "add_parameter",
        _infer_add_parameter,
        inputs=(2, 2),
        flops=lambda call: call.samples(call.inputs[0]),
        backward=(lambda _ask: None, _grad_added),
    ),
    Operator(
        "sum_to",
        _infer_sum_to,
        attributes={"shape": AttributeRule(Kind.SHAPE)},
        flops=lambda call: call.samples(call.inputs[0]),
    ),
)
