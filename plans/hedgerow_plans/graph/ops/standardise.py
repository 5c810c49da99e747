"""Standardising features with the mean and variance of everything seen so far, as TinyOL does.

The statistics are exact means over all samples, not ones that forget; how many samples they stand for is kept beside
them. A step works with those of the steps before it and moves them once, at its end, so that computing a node again
changes nothing. Samples one by one are enough: no batch is needed for a variance.
"""

from hedgerow_plans.graph.ir import Node, Tensor
from hedgerow_plans.graph.operator import AttributeRule, Backward, Call, Kind, Operator
from hedgerow_plans.graph.ops import expect

_EPSILON = {"epsilon": AttributeRule(Kind.NUMBER, default=1e-5)}


def _check_epsilon(call: Call) -> None:
    epsilon = call.number("epsilon")
    call.require(epsilon > 0, f"epsilon is {epsilon}; give it a number above 0, such as 1e-5")


def _check_statistics(call: Call, x: Tensor, statistics: tuple[Tensor, ...]) -> None:
    for tensor, shape in zip(statistics, (x.shape, x.shape, (1,)), strict=False):
        expect.shape(call, expect.parameter(call, tensor, rank=1), shape)


def _infer(call: Call) -> tuple[Tensor, ...]:
    _check_epsilon(call)
    x = expect.samples(call, call.inputs[0], rank=1)
    _check_statistics(call, x, call.inputs[1:])
    return (call.output(0, x.shape),)


def _infer_grad(call: Call) -> tuple[Tensor, ...]:
    _check_epsilon(call)
    gradient = expect.samples(call, call.inputs[0], rank=1)
    expect.shape(call, expect.parameter(call, call.inputs[1], rank=1), gradient.shape)
    return (call.output(0, gradient.shape),)


def _infer_update(call: Call) -> tuple[Tensor, ...]:
    x = expect.samples(call, call.inputs[0], rank=1)
    _check_statistics(call, x, call.updates)
    for tensor in call.updates:
        expect.trainable(call, tensor)
    return ()


def _grad(ask: Backward) -> Node:
    return ask.call("standardise_grad", (ask.gradient, ask.node.inputs[2]), dict(ask.node.attributes))


OPERATORS = (
    Operator(
        "standardise",
        _infer,
        inputs=(4, 4),  # x, mean, variance, and how many samples these stand for
        attributes=_EPSILON,
        flops=lambda call: 2 * call.samples(call.inputs[0]) + 3 * call.inputs[1].elements,
        scratch_bytes=lambda call: 4 * call.inputs[1].elements,  # the inverse deviation
        backward=(_grad, None, None, None),
    ),
    Operator(
        "standardise_grad",
        _infer_grad,
        inputs=(2, 2),
        attributes=_EPSILON,
        flops=lambda call: call.samples(call.inputs[0]) + 3 * call.inputs[1].elements,
        scratch_bytes=lambda call: 4 * call.inputs[1].elements,
    ),
    Operator(
        "update_standardisation",
        _infer_update,
        outputs=(0, 0),
        updates=(3, 3),
        flops=lambda call: 7 * call.samples(call.inputs[0]),
        scratch_bytes=lambda call: 2 * 4 * call.updates[0].elements,  # two differences of a sample
    ),
)
