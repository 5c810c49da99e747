"""Fully connected layers and their gradients, and the gradient of any layer's bias."""

from hedgerow_plans.graph.ir import Node, Tensor
from hedgerow_plans.graph.operator import Backward, Call, Operator, describe
from hedgerow_plans.graph.ops import expect


def _infer_linear(call: Call) -> tuple[Tensor, ...]:
    x = expect.samples(call, call.inputs[0], rank=1)
    weight = expect.parameter(call, call.inputs[1], rank=2)
    outputs, features = weight.shape
    problem = (
        f"the weight {weight.name!r} has shape {describe(weight.shape)}, but {x.name!r} has {x.elements} features; "
        f"give the weight shape {describe((outputs, x.elements))}"
    )
    call.require(features == x.elements, problem)
    for bias in call.inputs[2:]:
        expect.shape(call, expect.parameter(call, bias, rank=1), (outputs,))
    return (call.output(0, (outputs,)),)


def _linear_flops(call: Call) -> int:
    bias = sum(tensor.elements for tensor in call.inputs[2:])
    return call.micro_batch * (2 * call.inputs[1].elements + bias)


def _infer_grad_input(call: Call) -> tuple[Tensor, ...]:
    gradient = expect.samples(call, call.inputs[0], rank=1)
    weight = expect.parameter(call, call.inputs[1], rank=2)
    expect.shape(call, gradient, weight.shape[:1])
    return (call.output(0, weight.shape[1:]),)


def _infer_grad_weight(call: Call) -> tuple[Tensor, ...]:
    gradient = expect.samples(call, call.inputs[0], rank=1)
    x = expect.samples(call, call.inputs[1], rank=1)
    return (call.output(0, (gradient.elements, x.elements), batched=False),)


def _infer_bias_grad(call: Call) -> tuple[Tensor, ...]:
    gradient = expect.samples(call, call.inputs[0])
    call.require(gradient.shape != (), f"{gradient.name!r} is one number per sample; give it a layer's gradient")
    return (call.output(0, gradient.shape[:1], batched=False),)


def _grad_input(ask: Backward) -> Node:
    return ask.call("linear_grad_input", (ask.gradient, ask.node.inputs[1]))


def _grad_weight(ask: Backward) -> Node:
    return ask.call("linear_grad_weight", (ask.gradient, ask.node.inputs[0]))


def grad_bias(ask: Backward) -> Node:
    """Return the node that sums a gradient over everything but its channels."""
    return ask.call("bias_grad", (ask.gradient,))


OPERATORS = (
    Operator(
        "linear",
        _infer_linear,
        inputs=(2, 3),
        flops=_linear_flops,
        backward=(_grad_input, _grad_weight, grad_bias),
    ),
    Operator(
        "linear_grad_input",
        _infer_grad_input,
        inputs=(2, 2),
        flops=lambda call: 2 * call.micro_batch * call.inputs[1].elements,
    ),
    Operator(
        "linear_grad_weight",
        _infer_grad_weight,
        inputs=(2, 2),
        flops=lambda call: 2 * call.micro_batch * call.outputs[0].elements,
    ),
    Operator("bias_grad", _infer_bias_grad, flops=lambda call: call.samples(call.inputs[0])),
)
