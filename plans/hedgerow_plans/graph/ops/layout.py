"""Operators that only move numbers: join, split, cut out, surround, turn, or lay down in another order.

They work with and without a batch axis.

They are each other's gradients: a slice is undone by a pad, a pad by a slice, a concat by slices, a split by a concat.
Axes are counted without the batch axis.
"""

from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Node, Tensor
from hedgerow_plans.graph.operator import (
    MAXIMUM_RANK,
    AttributeRule,
    Backward,
    BackwardRule,
    Call,
    Kind,
    Operator,
    Shape,
    describe,
)
from hedgerow_plans.graph.ops import expect, orders

MOST_PARTS = 63
"""Most tensors that one node joins; the limit of names per node, less its output."""

_AXIS = {"axis": AttributeRule(Kind.INTEGER, default=0, minimum=0)}


def _axis(call: Call, tensor: Tensor) -> int:
    axis, count = call.integer("axis"), len(tensor.shape)
    problem = f"attribute 'axis' is {axis}, but {tensor.name!r} has shape {describe(tensor.shape)}; count from 0"
    call.require(axis < count, problem)
    return axis


def _with(shape: Shape, axis: int, length: int) -> Shape:
    return (*shape[:axis], length, *shape[axis + 1 :])


def _infer_concat(call: Call) -> tuple[Tensor, ...]:
    first = expect.values(call, call.inputs[0])
    axis, length = _axis(call, first), 0
    for tensor in call.inputs:
        expect.values(call, tensor)
        wanted = _with(first.shape, axis, tensor.shape[axis] if len(tensor.shape) > axis else 1)
        expect.alike(call, Tensor(first.name, wanted, batched=first.batched), tensor)
        length += tensor.shape[axis]
    return (call.output(0, _with(first.shape, axis, length), batched=first.batched),)


def _infer_split(call: Call) -> tuple[Tensor, ...]:
    x, sizes = expect.values(call, call.inputs[0]), call.shape("sizes")
    axis, outputs = _axis(call, x), len(call.node.outputs)
    problem = f"it splits {x.name!r} of shape {describe(x.shape)} along axis {axis} into {describe(sizes)}"
    call.require(sum(sizes) == x.shape[axis], f"{problem}; make the sizes add up to {x.shape[axis]}")
    call.require(len(sizes) == outputs, f"{problem}, but has {outputs} outputs; give it one for each size")
    return tuple(
        call.output(number, _with(x.shape, axis, size), batched=x.batched) for number, size in enumerate(sizes)
    )


def _infer_slice(call: Call) -> tuple[Tensor, ...]:
    x, start, shape = expect.values(call, call.inputs[0]), call.shape("start"), call.shape()
    inside = len(start) == len(shape) == len(x.shape) and all(
        first + length <= side for first, length, side in zip(start, shape, x.shape, strict=True)
    )
    problem = f"{describe(shape)} from {describe(start)} on is not inside {x.name!r} of shape {describe(x.shape)}"
    call.require(inside, f"{problem}; give start and shape for every axis, within it")
    return (call.output(0, shape, batched=x.batched),)


def _infer_pad(call: Call) -> tuple[Tensor, ...]:
    x, before, after = expect.values(call, call.inputs[0]), call.shape("before"), call.shape("after")
    problem = f"it pads {x.name!r} of shape {describe(x.shape)} by {describe(before)} and {describe(after)}"
    whole = len(before) == len(after) == len(x.shape)
    call.require(whole, f"{problem}; give a number before and after for every axis")
    shape = tuple(sum(sides) for sides in zip(before, x.shape, after, strict=True))
    return (call.output(0, shape, batched=x.batched),)


def _infer_transpose(call: Call) -> tuple[Tensor, ...]:
    x, axes = expect.values(call, call.inputs[0]), call.shape("axes")
    problem = f"the axes {describe(axes)} are no order of those of {x.name!r}, shape {describe(x.shape)}"
    call.require(sorted(axes) == list(range(len(x.shape))), f"{problem}; name each once, counted from 0")
    return (call.output(0, tuple(x.shape[axis] for axis in axes), batched=x.batched),)


def _infer_reorder(call: Call) -> tuple[Tensor, ...]:
    x = expect.values(call, call.inputs[0])
    return (call.output(0, x.shape, batched=x.batched),)


def _integers(ask: Backward, name: str) -> tuple[int, ...]:
    value = ask.node.attributes[name]
    return value if isinstance(value, tuple) else ()


def _joined_axis(ask: Backward) -> int:
    axis = ask.node.attributes.get("axis", 0)
    return axis if isinstance(axis, int) else 0


def _grad_part(position: int) -> BackwardRule:
    """Return the rule for one of the tensors that were joined."""

    def rule(ask: Backward) -> Node:
        axis, shape = _joined_axis(ask), ask.input(position).shape
        offset = sum(ask.input(earlier).shape[axis] for earlier in range(position))
        start = _with((0,) * len(shape), axis, offset)
        return ask.call("slice", (ask.gradient,), {"start": start, "shape": shape})

    return rule


def _grad_split(ask: Backward) -> Node:
    for name, gradient in zip(ask.node.outputs, ask.gradients, strict=True):
        if not gradient:
            problem = f"part {name!r} of node {ask.node.name!r} (split) is not used"
            raise GraphError(f"The graph cannot be differentiated: {problem}; cut out the others with slice instead.")
    return ask.call("concat", ask.gradients, {"axis": _joined_axis(ask)})


def _grad_slice(ask: Backward) -> Node:
    start, shape = _integers(ask, "start"), _integers(ask, "shape")
    whole = zip(ask.input(0).shape, start, shape, strict=True)
    after = tuple(side - first - length for side, first, length in whole)
    return ask.call("pad", (ask.gradient,), {"before": start, "after": after})


def _grad_pad(ask: Backward) -> Node:
    attributes = {"start": _integers(ask, "before"), "shape": ask.input(0).shape}
    return ask.call("slice", (ask.gradient,), attributes)


def _grad_transpose(ask: Backward) -> Node:
    axes = _integers(ask, "axes")
    return ask.call("transpose", (ask.gradient,), {"axes": tuple(axes.index(axis) for axis in range(len(axes)))})


OPERATORS = (
    Operator(
        "concat",
        _infer_concat,
        inputs=(1, MOST_PARTS),
        attributes=_AXIS,
        backward=tuple(_grad_part(position) for position in range(MOST_PARTS)),
        check_orders=orders.images_alike,
    ),
    Operator(
        "split",
        _infer_split,
        outputs=(1, MAXIMUM_RANK),
        attributes={**_AXIS, "sizes": AttributeRule(Kind.INTEGERS)},
        backward=(_grad_split,),
        check_orders=orders.images_alike,
    ),
    Operator(
        "slice",
        _infer_slice,
        attributes={"start": AttributeRule(Kind.INTEGERS, minimum=0), "shape": AttributeRule(Kind.SHAPE)},
        backward=(_grad_slice,),
        check_orders=orders.images_alike,
    ),
    Operator(
        "pad",
        _infer_pad,
        attributes={
            "before": AttributeRule(Kind.INTEGERS, minimum=0),
            "after": AttributeRule(Kind.INTEGERS, minimum=0),
            "value": AttributeRule(Kind.NUMBER, default=0.0),
        },
        backward=(_grad_pad,),
        check_orders=orders.images_alike,
    ),
    Operator(
        "transpose",
        _infer_transpose,
        attributes={"axes": AttributeRule(Kind.INTEGERS, minimum=0)},
        backward=(_grad_transpose,),
    ),
    Operator("reorder", _infer_reorder, check_orders=orders.any_order),
)
