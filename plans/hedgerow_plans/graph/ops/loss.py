"""Losses, one number per sample, and their gradients averaged over the whole batch.

Cross-entropy of softmax compares logits with the number of a class; mean squared error and binary cross-entropy (of
logits too) compare each element with a number of its own, and average over the elements of a sample.
"""

from hedgerow_plans.graph.ir import DType, Node, Tensor
from hedgerow_plans.graph.operator import AttributeRule, Backward, Call, Kind, Operator
from hedgerow_plans.graph.ops import expect

LOSSES = ("cross_entropy", "mse", "bce")
"""Operators whose first output is the loss of each sample; inputs are the output of a network and its targets."""

_BATCH_SIZE = {"batch_size": AttributeRule(Kind.INTEGER)}


def _infer_cross_entropy(call: Call) -> tuple[Tensor, ...]:
    logits = expect.samples(call, call.inputs[0], rank=1)
    expect.samples(call, call.inputs[1], rank=0, dtype=DType.INT32)
    losses = call.output(0, ())
    return (losses, call.output(1, logits.shape)) if len(call.node.outputs) > 1 else (losses,)


def _infer_grad(call: Call) -> tuple[Tensor, ...]:
    probabilities = expect.samples(call, call.inputs[0], rank=1)
    expect.samples(call, call.inputs[1], rank=0, dtype=DType.INT32)
    return (call.output(0, probabilities.shape),)


def _grad(ask: Backward) -> Node:
    inputs = (ask.node.outputs[1], ask.node.inputs[1])
    return ask.call("cross_entropy_grad", inputs, {"batch_size": ask.batch_size})


def _infer_elementwise(call: Call) -> tuple[Tensor, ...]:
    predictions, targets = (expect.samples(call, tensor) for tensor in call.inputs)
    expect.alike(call, predictions, targets)
    return (call.output(0, ()),)


def _infer_elementwise_grad(call: Call) -> tuple[Tensor, ...]:
    predictions, targets = (expect.samples(call, tensor) for tensor in call.inputs)
    expect.alike(call, predictions, targets)
    return (call.output(0, predictions.shape),)


def _grad_elementwise(ask: Backward) -> Node:
    return ask.call(f"{ask.node.op}_grad", ask.node.inputs, {"batch_size": ask.batch_size})


def _elementwise(name: str, flops: int, gradient_flops: int) -> tuple[Operator, Operator]:
    """Return the rows of a loss that compares element by element; flops are those of one element."""
    loss = Operator(
        name,
        _infer_elementwise,
        inputs=(2, 2),
        flops=lambda call: flops * call.samples(call.inputs[0]),
        # one sample at a time
        scratch_bytes=lambda call: call.inputs[0].bytes(1),
        backward=(_grad_elementwise, None),
    )
    gradient = Operator(
        f"{name}_grad",
        _infer_elementwise_grad,
        inputs=(2, 2),
        attributes=_BATCH_SIZE,
        flops=lambda call: gradient_flops * call.samples(call.inputs[0]),
    )
    return loss, gradient


OPERATORS = (
    Operator(
        "cross_entropy",
        _infer_cross_entropy,
        inputs=(2, 2),
        outputs=(1, 2),
        # largest, difference, exponential, sum and quotient of each class
        flops=lambda call: 5 * call.samples(call.inputs[0]),
        # the exponentials, unless their quotients are an output anyway
        scratch_bytes=lambda call: 0 if len(call.outputs) > 1 else call.inputs[0].bytes(call.micro_batch),
        backward=(_grad, None),
        saved="probabilities",
    ),
    Operator(
        "cross_entropy_grad",
        _infer_grad,
        inputs=(2, 2),
        attributes=_BATCH_SIZE,
        flops=lambda call: 2 * call.samples(call.inputs[0]),
    ),
    # difference, square, sum
    *_elementwise("mse", 3, 2),
    # size, sign, exponential, logarithm, sum; rectifier, sum; product with the target, sum
    *_elementwise("bce", 9, 6),
)
