"""Nodes that change what survives a micro-batch or a step: optimiser updates and sums of gradients.

The learning rate is no attribute: it may change while a plan stays, so the executor brings it at run time.
"""

from hedgerow_plans.graph.ir import Role, Tensor
from hedgerow_plans.graph.operator import AttributeRule, Call, Kind, Operator
from hedgerow_plans.graph.ops import expect, orders
from hedgerow_plans.graph.tiles import UPDATE_TILE_ELEMENTS, tile_of


def _infer_sgd(call: Call) -> tuple[Tensor, ...]:
    momentum, weight_decay = call.number("momentum"), call.number("weight_decay")
    call.require(0 <= momentum < 1, f"momentum is {momentum}; give it a number from 0 to below 1")
    call.require(weight_decay >= 0, f"weight_decay is {weight_decay}; give it a number of at least 0")
    wanted = 2 if momentum else 1
    problem = f"momentum is {momentum} and it updates {len(call.updates)} tensors; velocity goes with momentum only"
    call.require(len(call.updates) == wanted, problem)
    for tensor, role in zip(call.updates, (Role.TRAINABLE, Role.STATE), strict=False):
        problem = f"{tensor.name!r} is {tensor.role.value}; it can only update a {role.value} tensor here"
        call.require(tensor.role is role, problem)
        expect.alike(call, expect.values(call, call.inputs[0]), expect.values(call, tensor))
    return ()


def _sgd_flops(call: Call) -> int:
    """Return one multiplication and one addition for the step, the momentum and the decay each."""
    terms = 1 + (call.number("momentum") != 0) + (call.number("weight_decay") != 0)
    return 2 * terms * call.inputs[0].elements


def _infer_accumulate(call: Call) -> tuple[Tensor, ...]:
    total = call.updates[0]
    call.require(not total.resident, f"{total.name!r} is {total.role.value}; it can only add to a tensor made by zero")
    expect.alike(call, expect.values(call, call.inputs[0]), expect.values(call, total))
    return ()


OPERATORS = (
    Operator(
        "sgd",
        _infer_sgd,
        outputs=(0, 0),
        updates=(1, 2),
        attributes={
            "momentum": AttributeRule(Kind.NUMBER, default=0.0),
            "weight_decay": AttributeRule(Kind.NUMBER, default=0.0),
        },
        flops=_sgd_flops,
        scratch_bytes=lambda call: 4 * tile_of(call.updates[0].elements, UPDATE_TILE_ELEMENTS),
        check_orders=orders.same_shape_same_order,
        as_stored=True,
    ),
    Operator(
        "zero",
        lambda call: (call.output(0, call.shape(), batched=False),),
        inputs=(0, 0),
        attributes={"shape": AttributeRule(Kind.SHAPE)},
        check_orders=orders.same_shape_same_order,
        as_stored=True,
    ),
    Operator(
        "accumulate",
        _infer_accumulate,
        outputs=(0, 0),
        updates=(1, 1),
        flops=lambda call: call.inputs[0].elements,
        check_orders=orders.same_shape_same_order,
        as_stored=True,
    ),
)
