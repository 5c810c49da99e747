"""What clipping by the global norm is made of: squares summed over all gradients, and the factor that follows."""

from hedgerow_plans.graph.ir import Tensor
from hedgerow_plans.graph.operator import AttributeRule, Call, Kind, Operator
from hedgerow_plans.graph.ops import expect, orders


def _infer_sum_squares(call: Call) -> tuple[Tensor, ...]:
    for tensor in call.inputs:
        expect.values(call, tensor)
        call.require(not tensor.batched, f"{tensor.name!r} has a batch axis; give it the gradient of a parameter")
    for before in call.inputs[1:]:
        expect.shape(call, before, ())
    return (call.output(0, (), batched=False),)


def _infer_factor(call: Call) -> tuple[Tensor, ...]:
    expect.shape(call, expect.values(call, call.inputs[0]), ())
    limit = call.number("limit")
    call.require(limit > 0, f"limit is {limit}; give it a number above 0")
    return (call.output(0, (), batched=False),)


OPERATORS = (
    Operator(
        "sum_squares",
        _infer_sum_squares,
        inputs=(1, 2),  # a gradient, and the sum so far
        flops=lambda call: 2 * call.inputs[0].elements,
        check_orders=orders.any_order,  # a sum over everything
        as_stored=True,
    ),
    Operator(
        "clip_factor",
        _infer_factor,
        attributes={"limit": AttributeRule(Kind.NUMBER)},
        flops=lambda _call: 3,  # a root, a division, and the smaller of two
    ),
)
