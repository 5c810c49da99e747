"""Nodes that change what survives a micro-batch or a step: optimiser updates and sums of gradients.

The learning rate is no attribute: it may change while a plan stays, so the executor brings it at run time. An update
may clip the gradient it reads: every number of it at `clip`, or all of it by a factor that comes as its last input.
"""

from hedgerow_plans.graph.ir import Role, Tensor
from hedgerow_plans.graph.operator import AttributeRule, Call, Kind, Operator
from hedgerow_plans.graph.ops import expect, orders
from hedgerow_plans.graph.tiles import UPDATE_TILE_ELEMENTS, tile_of

CLIP = AttributeRule(Kind.NUMBER, default=0.0)
"""The largest magnitude of a gradient's numbers; 0 leaves them as they are."""


def check_clipping(call: Call, factor: int) -> None:
    """Check the limit of an update, and the factor that may come as the input at this position."""
    limit = call.number("clip")
    call.require(limit >= 0, f"clip is {limit}; give it a number of at least 0")
    for tensor in call.inputs[factor:]:
        expect.shape(call, expect.values(call, tensor), ())
        call.require(not limit, f"it clips at {limit} and by the factor {tensor.name!r}; choose one")


def clips(call: Call, factor: int) -> bool:
    """Whether an update works on a clipped copy of its gradient, a tile at a time."""
    return call.number("clip") != 0 or len(call.inputs) > factor


def _infer_sgd(call: Call) -> tuple[Tensor, ...]:
    momentum, weight_decay = call.number("momentum"), call.number("weight_decay")
    call.require(0 <= momentum < 1, f"momentum is {momentum}; give it a number from 0 to below 1")
    call.require(weight_decay >= 0, f"weight_decay is {weight_decay}; give it a number of at least 0")
    check_clipping(call, 1)
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
    return (2 * terms + clips(call, 1)) * call.inputs[0].elements


def tile_bytes(call: Call) -> int:
    """Return the bytes of one tile of the parameter that is updated."""
    return 4 * tile_of(call.updates[0].elements, UPDATE_TILE_ELEMENTS)


def _infer_accumulate(call: Call) -> tuple[Tensor, ...]:
    total = call.updates[0]
    call.require(not total.resident, f"{total.name!r} is {total.role.value}; it can only add to a tensor made by zero")
    expect.alike(call, expect.values(call, call.inputs[0]), expect.values(call, total))
    return ()


OPERATORS = (
    Operator(
        "sgd",
        _infer_sgd,
        inputs=(1, 2),
        outputs=(0, 0),
        updates=(1, 2),
        attributes={
            "momentum": AttributeRule(Kind.NUMBER, default=0.0),
            "weight_decay": AttributeRule(Kind.NUMBER, default=0.0),
            "clip": CLIP,
        },
        flops=_sgd_flops,
        scratch_bytes=lambda call: (1 + clips(call, 1)) * tile_bytes(call),
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
