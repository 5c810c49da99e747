"""Activations besides the rectifier, and what their backward reads: a bit, the result, the argument, or the slope."""

from hedgerow_plans.graph.ir import Node, Tensor
from hedgerow_plans.graph.operator import Backward, BackwardRule, Call, Operator
from hedgerow_plans.graph.ops import expect, orders
from hedgerow_plans.graph.ops.elementwise import grad_relu, infer_relu, relu_scratch
from hedgerow_plans.graph.tiles import ACTIVATION_TILE_ELEMENTS, GELU_TILE_ELEMENTS, tile_of

_GELU_FLOPS = 2 * 5 + 12
"""A polynomial of degree 5 and what is around it: the normal distribution function to 32 bits, and its product."""
_SLOPE_FLOPS = 3


def _infer(call: Call) -> tuple[Tensor, ...]:
    x = expect.values(call, call.inputs[0])
    for other in call.inputs[1:]:
        expect.alike(call, x, expect.values(call, other))
    return (call.output(0, x.shape, batched=x.batched),)


def _relu6_scratch(call: Call) -> int:
    """Return two bytes per element of a tile while its mask is packed: above zero, and below six."""
    return 2 * relu_scratch(call)


def _infer_gelu(call: Call) -> tuple[Tensor, ...]:
    (y,) = _infer(call)
    return (y, call.output(1, y.shape, batched=y.batched)) if len(call.node.outputs) > 1 else (y,)


def _gelu_flops(call: Call) -> int:
    return (_GELU_FLOPS + (_SLOPE_FLOPS if len(call.outputs) > 1 else 0)) * call.samples(call.inputs[0])


def _grad_from_slope(ask: Backward) -> Node:
    return ask.call("mul", (ask.gradient, ask.node.outputs[1]))


def _grad_from_argument(ask: Backward) -> Node:
    return ask.call(f"{ask.node.op}_grad", (ask.gradient, ask.node.inputs[0]))


def _grad_from_result(ask: Backward) -> Node:
    return ask.call(f"{ask.node.op}_grad", (ask.gradient, ask.node.outputs[0]))


class _Scratch:
    """Bytes per element of one tile, whatever the micro-batch."""

    def __init__(self, element_bytes: int) -> None:
        self._element_bytes = element_bytes

    def __call__(self, call: Call) -> int:
        return self._element_bytes * tile_of(call.samples(call.inputs[0]), ACTIVATION_TILE_ELEMENTS)


class _Flops:
    """Arithmetic per element; an exponential, a tanh or a quotient counts one."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __call__(self, call: Call) -> int:
        return self._count * call.samples(call.inputs[0])


def _pair(
    name: str, backward: BackwardRule, flops: tuple[int, int], scratch: tuple[int, int] = (0, 0)
) -> tuple[Operator, Operator]:
    """Return an activation and its gradient; `flops` and `scratch` (bytes per element of a tile) are of both."""
    return (
        Operator(name, _infer, flops=_Flops(flops[0]), scratch_bytes=_Scratch(scratch[0]), backward=(backward,)),
        Operator(f"{name}_grad", _infer, inputs=(2, 2), flops=_Flops(flops[1]), scratch_bytes=_Scratch(scratch[1])),
    )


def _rectifier_grad(name: str) -> Operator:
    """Return the gradient of a rectifier from its result instead of a bit: for a result that is kept anyway."""
    return Operator(
        f"{name}_grad_from_result",
        _infer,
        inputs=(2, 2),
        flops=_Flops(1),
        scratch_bytes=_Scratch(4),
        check_orders=orders.images_alike,
    )


OPERATORS = (
    Operator(
        "relu6",
        infer_relu,
        outputs=(1, 2),
        flops=_Flops(2),
        scratch_bytes=_relu6_scratch,
        backward=(grad_relu,),
        saved="mask",
        check_orders=orders.images_alike,
    ),
    _rectifier_grad("relu"),
    _rectifier_grad("relu6"),
    *_pair("sigmoid", _grad_from_result, flops=(4, 3)),
    *_pair("tanh", _grad_from_result, flops=(1, 3)),
    *_pair("silu", _grad_from_argument, flops=(5, 9), scratch=(0, 4)),
    *_pair("hswish", _grad_from_argument, flops=(5, 5), scratch=(0, 1)),
    Operator(
        "gelu",
        _infer_gelu,
        outputs=(1, 2),
        flops=_gelu_flops,
        scratch_bytes=lambda call: 4 * tile_of(call.samples(call.inputs[0]), GELU_TILE_ELEMENTS),
        backward=(_grad_from_slope,),
        saved="slope",
    ),
)
