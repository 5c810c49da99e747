"""Fully connected layers and their gradients, and the gradient of any layer's bias.

A sample is a vector of features or a sequence (tokens, features), to each of whose tokens the same layer applies. With
plain SGD the gradient of a weight may go straight into it (`sgd_linear`) and never exist as a whole.
"""

from hedgerow_plans.graph.ir import Node, Order, Tensor
from hedgerow_plans.graph.operator import AttributeRule, Backward, Call, Kind, Operator, describe
from hedgerow_plans.graph.ops import expect, orders
from hedgerow_plans.graph.ops.channel_sums import sums_scratch


def _vectors(call: Call, tensor: Tensor) -> Tensor:
    """Return the tensor if a sample is a vector or a sequence of them."""
    expect.samples(call, tensor)
    problem = f"{tensor.name!r} has shape {describe(tensor.shape)}; give it a tensor with 1 or 2 axes per sample"
    call.require(len(tensor.shape) in (1, 2), problem)
    return tensor


def _infer_linear(call: Call) -> tuple[Tensor, ...]:
    x = _vectors(call, call.inputs[0])
    weight = expect.parameter(call, call.inputs[1], rank=2)
    outputs, features = weight.shape
    problem = (
        f"the weight {weight.name!r} has shape {describe(weight.shape)}, but {x.name!r} has {x.shape[-1]} features; "
        f"give the weight shape {describe((outputs, x.shape[-1]))}"
    )
    call.require(features == x.shape[-1], problem)
    for bias in call.inputs[2:]:
        expect.shape(call, expect.parameter(call, bias, rank=1), (outputs,))
    return (call.output(0, (*x.shape[:-1], outputs)),)


def _weight_either_way(call: Call, weight: Tensor) -> None:
    """Raise a sentence unless everything but the weight lies as its shape says."""
    for tensor in (*call.inputs, *call.updates, *call.outputs):
        orders.lies_as(call, tensor, Order.SAMPLES, *((Order.INPUTS,) if tensor is weight else ()))


def _linear_flops(call: Call) -> int:
    bias = call.samples(call.outputs[0]) if len(call.inputs) > 2 else 0
    return 2 * call.samples(call.inputs[0]) * call.inputs[1].shape[0] + bias


def _infer_grad_input(call: Call) -> tuple[Tensor, ...]:
    gradient = _vectors(call, call.inputs[0])
    weight = expect.parameter(call, call.inputs[1], rank=2)
    expect.shape(call, gradient, (*gradient.shape[:-1], weight.shape[0]))
    return (call.output(0, (*gradient.shape[:-1], weight.shape[1])),)


def _infer_grad_weight(call: Call) -> tuple[Tensor, ...]:
    gradient, x = (_vectors(call, tensor) for tensor in call.inputs)
    expect.shape(call, x, (*gradient.shape[:-1], *x.shape[-1:]))
    return (call.output(0, (gradient.shape[-1], x.shape[-1]), batched=False),)


def _infer_sgd_linear(call: Call) -> tuple[Tensor, ...]:
    gradient, x = (_vectors(call, tensor) for tensor in call.inputs)
    weight = expect.trainable(call, expect.parameter(call, call.updates[0], rank=2))
    expect.shape(call, gradient, (*x.shape[:-1], weight.shape[0]))
    expect.shape(call, x, (*x.shape[:-1], weight.shape[1]))
    return ()


def _infer_bias_grad(call: Call) -> tuple[Tensor, ...]:
    gradient = expect.samples(call, call.inputs[0])
    call.require(gradient.shape != (), f"{gradient.name!r} is one number per sample; give it a layer's gradient")
    channels = gradient.shape[0] if call.attributes["channels"] == "first" else gradient.shape[-1]
    return (call.output(0, (channels,), batched=False),)


def _grad_input(ask: Backward) -> Node:
    return ask.call("linear_grad_input", (ask.gradient, ask.node.inputs[1]))


def _grad_weight(ask: Backward) -> Node:
    return ask.call("linear_grad_weight", (ask.gradient, ask.node.inputs[0]))


def grad_bias(ask: Backward) -> Node:
    """Return the node that sums a gradient over everything but its channels, which come first."""
    return ask.call("bias_grad", (ask.gradient,))


def _grad_bias(ask: Backward) -> Node:
    """Return the same for a layer whose channels come last; of a vector the first axis is the last."""
    sequence = len(ask.input(0).shape) > 1
    return ask.call("bias_grad", (ask.gradient,), {"channels": "last"} if sequence else {})


OPERATORS = (
    Operator(
        "linear",
        _infer_linear,
        inputs=(2, 3),
        flops=_linear_flops,
        backward=(_grad_input, _grad_weight, _grad_bias),
        check_orders=lambda call: _weight_either_way(call, call.inputs[1]),
    ),
    Operator(
        "linear_grad_input",
        _infer_grad_input,
        inputs=(2, 2),
        flops=lambda call: 2 * call.samples(call.inputs[0]) * call.inputs[1].shape[1],
        check_orders=lambda call: _weight_either_way(call, call.inputs[1]),
    ),
    Operator(
        "linear_grad_weight",
        _infer_grad_weight,
        inputs=(2, 2),
        flops=lambda call: 2 * call.samples(call.inputs[0]) * call.inputs[1].shape[-1],
        check_orders=lambda call: _weight_either_way(call, call.outputs[0]),
    ),
    Operator(
        "sgd_linear",
        _infer_sgd_linear,
        inputs=(2, 2),
        outputs=(0, 0),
        updates=(1, 1),
        flops=lambda call: 2 * call.samples(call.inputs[0]) * call.inputs[1].shape[-1] + 2 * call.updates[0].elements,
        check_orders=lambda call: _weight_either_way(call, call.updates[0]),
    ),
    Operator(
        "bias_grad",
        _infer_bias_grad,
        attributes={"channels": AttributeRule(Kind.TEXT, default="first", choices=("first", "last"))},
        flops=lambda call: call.samples(call.inputs[0]),
        scratch_bytes=lambda call: sums_scratch(call, call.inputs[0]),
        check_orders=orders.images_alike,
    ),
)
