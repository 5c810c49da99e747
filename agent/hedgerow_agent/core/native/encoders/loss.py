"""Losses of samples."""

from hedgerow_agent.core.kernels.call import Call
from hedgerow_agent.core.native.draft import Block, Draft, Drafts


def _cross_entropy(call: Call, _block: Block) -> Drafts:
    samples, classes = call.inputs[0].shape
    operands = (*call.inputs, *call.outputs)
    return (Draft("cross_entropy", operands, (samples, classes), samples, work=8 * samples * classes),)


def _cross_entropy_grad(call: Call, _block: Block) -> Drafts:
    samples, classes = call.inputs[0].shape
    numbers = (float(call.integer("batch_size", samples)),)
    operands, work = (*call.inputs, *call.outputs), 2 * samples * classes
    return (Draft("cross_entropy_grad", operands, (samples, classes), samples, work, numbers),)


ENCODERS = {"cross_entropy": _cross_entropy, "cross_entropy_grad": _cross_entropy_grad}
