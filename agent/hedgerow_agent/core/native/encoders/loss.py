"""Losses of samples."""

from hedgerow_agent.core.kernels.call import Call
from hedgerow_agent.core.native.draft import Block, Draft, Drafts, Encoder
from hedgerow_agent.core.native.encoders.elementwise import elements


def _cross_entropy(call: Call, _block: Block) -> Drafts:
    samples, classes = call.inputs[0].shape
    operands = (*call.inputs, *call.outputs)
    return (Draft("cross_entropy", operands, (samples, classes), samples, work=8 * samples * classes),)


def _cross_entropy_grad(call: Call, _block: Block) -> Drafts:
    samples, classes = call.inputs[0].shape
    numbers = (float(call.integer("batch_size", samples)),)
    operands, work = (*call.inputs, *call.outputs), 2 * samples * classes
    return (Draft("cross_entropy_grad", operands, (samples, classes), samples, work, numbers),)


def _compared(op: str, work: int) -> Encoder:
    """Return the encoder of a loss that compares number by number, with so much work for each."""

    def encode(call: Call, _block: Block) -> Drafts:
        samples, size = len(call.inputs[0]), call.inputs[0].size
        return (Draft(op, (*call.inputs, *call.outputs), (samples, size // samples), samples, work * size),)

    return encode


def _compared_grad(op: str, factor: float) -> Encoder:
    """Return the encoder of its gradient, a difference times a factor over the numbers of all samples."""

    def encode(call: Call, _block: Block) -> Drafts:
        (output,) = call.outputs
        numbers = (factor / (output[0].size * call.integer("batch_size", len(output))),)
        return (elements(op, *call.inputs, output, count=output.size, numbers=numbers),)

    return encode


ENCODERS: dict[str, Encoder] = {
    "cross_entropy": _cross_entropy,
    "cross_entropy_grad": _cross_entropy_grad,
    "mse": _compared("mse", work=2),
    "mse_grad": _compared_grad("mse_grad", 2.0),
    "bce": _compared("bce", work=8),
    "bce_grad": _compared_grad("bce_grad", 1.0),
}
