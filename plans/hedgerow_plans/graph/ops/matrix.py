"""Products of two computed matrices, one pair per sample; either may be read as its transpose."""

from hedgerow_plans.graph.ir import Node, Tensor
from hedgerow_plans.graph.operator import AttributeRule, Backward, Call, Kind, Operator, Shape, describe
from hedgerow_plans.graph.ops import expect

_FLAGS = ("transpose_first", "transpose_second")


def _infer_matmul(call: Call) -> tuple[Tensor, ...]:
    first, second = (expect.values(call, tensor) for tensor in call.inputs)
    shapes = f"{first.name!r} of shape {describe(first.shape)} and {second.name!r} of shape {describe(second.shape)}"
    matrices = len(first.shape) == len(second.shape) >= 2 and first.shape[:-2] == second.shape[:-2]
    call.require(matrices, f"it got {shapes}; give it matrices with the same axes in front")
    problem = f"only one of {first.name!r} and {second.name!r} has a batch axis; give it two tensors of one kind"
    call.require(first.batched == second.batched, problem)
    left, right = (_turned(call, tensor, flag) for tensor, flag in zip(call.inputs, _FLAGS, strict=True))
    call.require(left[1] == right[0], f"{shapes} do not go together: {left[1]} columns meet {right[0]} rows")
    return (call.output(0, (*first.shape[:-2], left[0], right[1]), batched=first.batched),)


def _turned(call: Call, tensor: Tensor, flag: str) -> Shape:
    rows, columns = tensor.shape[-2:]
    return (columns, rows) if call.flag(flag) else (rows, columns)


def _flops(call: Call) -> int:
    inner = call.inputs[0].shape[-2] if call.flag(_FLAGS[0]) else call.inputs[0].shape[-1]
    return 2 * call.samples(call.outputs[0]) * inner


def _product(ask: Backward, first: tuple[str, bool], second: tuple[str, bool]) -> Node:
    attributes = {flag: turned for flag, (_, turned) in zip(_FLAGS, (first, second), strict=True)}
    return ask.call("matmul", (first[0], second[0]), attributes)


def _grad_first(ask: Backward) -> Node:
    """Return dy second' or, for a transposed first, second dy'."""
    turned, other = (ask.node.attributes.get(flag, False) is True for flag in _FLAGS)
    second = ask.node.inputs[1]
    if turned:
        return _product(ask, (second, other), (ask.gradient, True))
    return _product(ask, (ask.gradient, False), (second, not other))


def _grad_second(ask: Backward) -> Node:
    """Return first' dy or, for a transposed second, dy' first."""
    other, turned = (ask.node.attributes.get(flag, False) is True for flag in _FLAGS)
    first = ask.node.inputs[0]
    if turned:
        return _product(ask, (ask.gradient, True), (first, other))
    return _product(ask, (first, not other), (ask.gradient, False))


OPERATORS = (
    Operator(
        "matmul",
        _infer_matmul,
        inputs=(2, 2),
        attributes={flag: AttributeRule(Kind.FLAG, default=False) for flag in _FLAGS},
        flops=_flops,
        backward=(_grad_first, _grad_second),
    ),
)
