"""Updates of optimisers that keep two moments of each gradient: Adam, and Adam with moments of eight bits.

Both read how many steps their moments have seen. That number is a resident tensor of its own, changed by `count` after
the last update of a step: it is kept and restored with the moments, so it cannot disagree with them.
"""

from hedgerow_plans.graph.ir import DType, Role, Tensor
from hedgerow_plans.graph.operator import AttributeRule, Call, Kind, Operator
from hedgerow_plans.graph.ops import expect, orders
from hedgerow_plans.graph.ops.update import CLIP, check_clipping, clips, tile_bytes
from hedgerow_plans.graph.tiles import STATE_BLOCK_ELEMENTS

_ATTRIBUTES = {
    "beta1": AttributeRule(Kind.NUMBER, default=0.9),
    "beta2": AttributeRule(Kind.NUMBER, default=0.999),
    "epsilon": AttributeRule(Kind.NUMBER, default=1e-8),
    "weight_decay": AttributeRule(Kind.NUMBER, default=0.0),
    "clip": CLIP,
}


def blocks_of(elements: int) -> int:
    """Return how many blocks, each with a scale of its own, hold the eight-bit moments of a parameter."""
    return -(-elements // STATE_BLOCK_ELEMENTS)


def _check_settings(call: Call) -> None:
    for name in ("beta1", "beta2"):
        value = call.number(name)
        call.require(0 <= value < 1, f"{name} is {value}; give it a number from 0 to below 1")
    call.require(call.number("epsilon") > 0, f"epsilon is {call.number('epsilon')}; give it a number above 0")
    decay = call.number("weight_decay")
    call.require(decay >= 0, f"weight_decay is {decay}; give it a number of at least 0")
    check_clipping(call, 2)


def _check_steps(call: Call, steps: Tensor) -> None:
    expect.values(call, steps, DType.INT32)
    expect.shape(call, steps, ())
    call.require(steps.role is Role.STATE, f"{steps.name!r} is {steps.role.value}; give it the state that counts steps")


def _check_updates(call: Call, wanted: tuple[tuple[DType, tuple[int, ...]], ...]) -> None:
    parameter = call.updates[0]
    problem = f"{parameter.name!r} is {parameter.role.value}; it can only update a trainable tensor here"
    call.require(parameter.role is Role.TRAINABLE, problem)
    expect.alike(call, expect.values(call, call.inputs[0]), expect.values(call, parameter))
    for tensor, (dtype, shape) in zip(call.updates[1:], wanted, strict=True):
        problem = f"{tensor.name!r} is {tensor.role.value}; it can only update a state tensor here"
        call.require(tensor.role is Role.STATE, problem)
        expect.shape(call, expect.values(call, tensor, dtype), shape)


def _infer_adam(call: Call) -> tuple[Tensor, ...]:
    _check_settings(call)
    _check_steps(call, call.inputs[1])
    moment = (DType.FLOAT32, call.updates[0].shape)
    _check_updates(call, (moment, moment))
    return ()


def _infer_adam8bit(call: Call) -> tuple[Tensor, ...]:
    _check_settings(call)
    _check_steps(call, call.inputs[1])
    shape, blocks = call.updates[0].shape, (blocks_of(call.updates[0].elements),)
    scale = (DType.FLOAT32, blocks)
    _check_updates(call, ((DType.INT8, shape), scale, (DType.UINT8, shape), scale))
    return ()


def _infer_count(call: Call) -> tuple[Tensor, ...]:
    _check_steps(call, call.updates[0])
    return ()


def _adam_flops(call: Call) -> int:
    """Return 3 for the first moment, 4 for the second, 6 for the step and 1 for the decay, of each element."""
    return (13 + (call.number("weight_decay") != 0) + clips(call, 2)) * call.inputs[0].elements


def _adam8bit_flops(call: Call) -> int:
    """Return Adam's, 8 to read both moments and 12 to write them back."""
    return _adam_flops(call) + 20 * call.inputs[0].elements


OPERATORS = (
    Operator(
        "adam",
        _infer_adam,
        inputs=(2, 3),
        outputs=(0, 0),
        updates=(3, 3),
        attributes=_ATTRIBUTES,
        flops=_adam_flops,
        scratch_bytes=lambda call: (1 + clips(call, 2)) * tile_bytes(call),
        check_orders=orders.same_shape_same_order,
        as_stored=True,
    ),
    Operator(
        "adam8bit",
        _infer_adam8bit,
        inputs=(2, 3),
        outputs=(0, 0),
        updates=(5, 5),
        attributes=_ATTRIBUTES,
        flops=_adam8bit_flops,
        scratch_bytes=lambda call: (3 + clips(call, 2)) * tile_bytes(call),  # both moments in full, and room to work
        check_orders=orders.same_shape_same_order,
        as_stored=True,
    ),
    Operator("count", _infer_count, inputs=(0, 0), outputs=(0, 0), updates=(1, 1), flops=lambda _call: 1),
)
