"""Dropout without memory: which elements are dropped follows from seed, step and sample, so nothing is saved.

The backward is the operator itself with the same seed. A graph for evaluation has no such node.
"""

from hedgerow_plans.graph.ir import Node, Tensor
from hedgerow_plans.graph.operator import AttributeRule, Backward, Call, Kind, Operator
from hedgerow_plans.graph.ops import expect
from hedgerow_plans.graph.tiles import ACTIVATION_TILE_ELEMENTS, tile_of


def _infer(call: Call) -> tuple[Tensor, ...]:
    rate = call.number("rate")
    call.require(0 <= rate < 1, f"rate is {rate}; give it a number from 0 to below 1")
    x = expect.samples(call, call.inputs[0])
    return (call.output(0, x.shape),)


def _grad(ask: Backward) -> Node:
    return ask.call("dropout", (ask.gradient,), ask.node.attributes)


OPERATORS = (
    Operator(
        "dropout",
        _infer,
        attributes={"rate": AttributeRule(Kind.NUMBER), "seed": AttributeRule(Kind.INTEGER, minimum=0)},
        flops=lambda call: call.samples(call.inputs[0]),
        # two 32-bit words per element of a tile: the counter as it is mixed, and what it is mixed with
        scratch_bytes=lambda call: 8 * tile_of(call.inputs[0].elements, ACTIVATION_TILE_ELEMENTS),
        backward=(_grad,),
    ),
)
