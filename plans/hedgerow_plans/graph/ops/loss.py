"""Cross-entropy of softmax, and its gradient averaged over the whole batch."""

from hedgerow_plans.graph.ir import DType, Node, Tensor
from hedgerow_plans.graph.operator import AttributeRule, Backward, Call, Kind, Operator
from hedgerow_plans.graph.ops import expect


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
        attributes={"batch_size": AttributeRule(Kind.INTEGER)},
        flops=lambda call: 2 * call.samples(call.inputs[0]),
    ),
)
