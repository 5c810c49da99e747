"""Training without a backward pass (MeZO, Malladi et al. 2023): the slope of the loss along one random direction.

The direction has an element of -1 or 1 for each element of each trained tensor, and follows from seed, step and the
tensor's number, so that nothing of it is kept. The network runs a little way along it and a little way against it;
parameters stay as they are meanwhile, and only the layer in use has a copy that is moved. That is exact to the bit,
and a step that is cut off has changed nothing.
"""

from hedgerow_plans.graph.ir import Role, Tensor
from hedgerow_plans.graph.operator import AttributeRule, Call, Kind, Operator
from hedgerow_plans.graph.ops import expect
from hedgerow_plans.graph.tiles import UPDATE_TILE_ELEMENTS, tile_of

PERTURBED = "perturbed"
ACCUMULATE_SLOPE = "accumulate_slope"
DESCEND = "descend"
_KEY = AttributeRule(Kind.INTEGER, minimum=0)


def _infer_perturbed(call: Call) -> tuple[Tensor, ...]:
    parameter = expect.values(call, call.inputs[0])
    call.require(not parameter.batched, f"{parameter.name!r} has a batch axis; give it a parameter")
    return (call.output(0, parameter.shape, batched=False),)


def _infer_slope(call: Call) -> tuple[Tensor, ...]:
    for losses in call.inputs:
        expect.samples(call, losses, rank=0)
    total = call.updates[0]
    call.require(not total.resident, f"{total.name!r} is {total.role.value}; it can only add to a tensor made by zero")
    expect.shape(call, expect.values(call, total), (1,))
    call.require(call.number("distance") > 0, "distance is not above 0; give it how far along the losses were taken")
    return ()


def _infer_descend(call: Call) -> tuple[Tensor, ...]:
    expect.shape(call, expect.values(call, call.inputs[0]), (1,))
    parameter = expect.values(call, call.updates[0])
    problem = f"{parameter.name!r} is {parameter.role.value}; it can only update a trainable tensor"
    call.require(parameter.role is Role.TRAINABLE, problem)
    call.require(call.number("weight_decay") >= 0, "weight_decay is below 0; give it a number of at least 0")
    return ()


def _words(tensor: Tensor) -> int:
    """Return the bytes of two 32-bit words per element of a tile: the counter as it is mixed, and what with."""
    return 8 * tile_of(tensor.elements, UPDATE_TILE_ELEMENTS)


OPERATORS = (
    Operator(
        PERTURBED,
        _infer_perturbed,
        attributes={"key": _KEY, "distance": AttributeRule(Kind.NUMBER)},
        flops=lambda call: 3 * call.inputs[0].elements,
        scratch_bytes=lambda call: _words(call.inputs[0]),
        backward=(lambda _ask: None,),  # moving a parameter by a constant leaves its gradient as it is
    ),
    Operator(
        ACCUMULATE_SLOPE,
        _infer_slope,
        inputs=(2, 2),
        outputs=(0, 0),
        updates=(1, 1),
        attributes={"distance": AttributeRule(Kind.NUMBER), "batch_size": AttributeRule(Kind.INTEGER)},
        flops=lambda call: 2 * call.samples(call.inputs[0]),
    ),
    Operator(
        DESCEND,
        _infer_descend,
        outputs=(0, 0),
        updates=(1, 1),
        attributes={"key": _KEY, "weight_decay": AttributeRule(Kind.NUMBER, default=0.0)},
        flops=lambda call: 3 * call.updates[0].elements,
        scratch_bytes=lambda call: _words(call.updates[0]),
    ),
)
