"""Operators that work on each element by itself, and the one that only changes a shape."""

import math

from hedgerow_plans.graph.ir import DType, Node, Order, Tensor
from hedgerow_plans.graph.operator import AttributeRule, Backward, BackwardRule, Call, Kind, Operator, describe
from hedgerow_plans.graph.ops import expect, orders
from hedgerow_plans.graph.tiles import BYTE_TILE_ELEMENTS, images_per_tile, tile_of

_SCALE = {"scale": AttributeRule(Kind.NUMBER, default=1.0)}


def _mask_shape(x: Tensor) -> tuple[int, ...]:
    """Return the shape of one bit per element of a sample."""
    return (-(-x.elements // 8),)


def infer_relu(call: Call) -> tuple[Tensor, ...]:
    """Infer a rectifier: its result and, if asked for, one bit per element."""
    x = expect.samples(call, call.inputs[0])
    y = call.output(0, x.shape)
    return (y, call.output(1, _mask_shape(x), DType.UINT8)) if len(call.node.outputs) > 1 else (y,)


def relu_scratch(call: Call) -> int:
    """Return one byte per element of a tile while its mask is packed."""
    elements = call.inputs[0].elements
    if len(call.outputs) == 1:
        return 0
    if call.inputs[0].order is not Order.SAMPLES:
        return tile_of(call.samples(call.inputs[0]), BYTE_TILE_ELEMENTS)
    if elements > BYTE_TILE_ELEMENTS:
        return BYTE_TILE_ELEMENTS
    return elements * images_per_tile(call.micro_batch, elements, BYTE_TILE_ELEMENTS)


def _infer_relu_grad(call: Call) -> tuple[Tensor, ...]:
    gradient = expect.samples(call, call.inputs[0])
    mask = expect.samples(call, call.inputs[1], dtype=DType.UINT8)
    expect.shape(call, mask, _mask_shape(gradient))
    return (call.output(0, gradient.shape),)


def _infer_two_alike(call: Call) -> tuple[Tensor, ...]:
    first, second = (expect.values(call, tensor) for tensor in call.inputs)
    expect.alike(call, first, second)
    return (call.output(0, first.shape, batched=first.batched),)


def _infer_scale(call: Call) -> tuple[Tensor, ...]:
    x = expect.values(call, call.inputs[0])
    return (call.output(0, x.shape, batched=x.batched),)


def _infer_reshape(call: Call) -> tuple[Tensor, ...]:
    x, shape = expect.values(call, call.inputs[0]), call.shape()
    problem = f"{x.name!r} has shape {describe(x.shape)}, {x.elements} elements, and cannot become {describe(shape)}"
    call.require(math.prod(shape) == x.elements, problem)
    return (call.output(0, shape, batched=x.batched),)


def _one_each(call: Call) -> int:
    return call.samples(call.inputs[0])


def _add_flops(call: Call) -> int:
    return call.samples(call.inputs[0]) * (1 if call.number("scale") == 1 else 2)


def _grad_second(ask: Backward) -> Node | None:
    """Return dy times the scale; without one, dy itself."""
    scale = ask.node.attributes.get("scale", 1.0)
    return None if scale == 1 else ask.call("scale", (ask.gradient,), {"scale": scale})


def _grad_factor(other: int) -> BackwardRule:
    """Return the rule of one factor: dy times the other one."""
    return lambda ask: ask.call("mul", (ask.gradient, ask.node.inputs[other]))


def grad_relu(ask: Backward) -> Node:
    """Return the node that lets a gradient through where the bit is set."""
    return ask.call("relu_grad", (ask.gradient, ask.node.outputs[1]))


def _grad_reshape(ask: Backward) -> Node:
    return ask.call("reshape", (ask.gradient,), {"shape": ask.input(0).shape})


OPERATORS = (
    Operator(
        "relu",
        infer_relu,
        outputs=(1, 2),
        flops=_one_each,
        scratch_bytes=relu_scratch,
        backward=(grad_relu,),
        saved="mask",
        check_orders=orders.images_alike,
    ),
    Operator("relu_grad", _infer_relu_grad, inputs=(2, 2), flops=_one_each, check_orders=orders.images_alike),
    Operator(
        "add",
        _infer_two_alike,
        inputs=(2, 2),
        attributes=_SCALE,
        flops=_add_flops,
        backward=(lambda _ask: None, _grad_second),
        check_orders=orders.images_alike,
    ),
    Operator(
        "mul",
        _infer_two_alike,
        inputs=(2, 2),
        flops=_one_each,
        backward=(_grad_factor(1), _grad_factor(0)),
        check_orders=orders.images_alike,
    ),
    Operator(
        "scale",
        _infer_scale,
        attributes=_SCALE,
        flops=_one_each,
        backward=(_grad_second,),
        check_orders=orders.images_alike,
    ),
    Operator("reshape", _infer_reshape, attributes={"shape": AttributeRule(Kind.SHAPE)}, backward=(_grad_reshape,)),
)
