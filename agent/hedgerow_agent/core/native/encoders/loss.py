"""Losses of samples."""

from hedgerow_agent.core.kernels.call import Call
from hedgerow_agent.core.native.draft import Block, Draft


def _cross_entropy(call: Call, _block: Block) -> Draft:
    logits = call.inputs[0]
    samples, classes = logits.shape
    return Draft("cross_entropy", (*call.inputs, *call.outputs), (samples, classes), samples, work=8 * logits.size)


def _cross_entropy_grad(call: Call, _block: Block) -> Draft:
    samples, classes = call.inputs[0].shape
    batch_size = float(call.integer("batch_size", samples))
    return Draft(
        "cross_entropy_grad",
        (*call.inputs, *call.outputs),
        (samples, classes),
        samples,
        work=2 * samples * classes,
        numbers=(batch_size,),
    )


ENCODERS = {"cross_entropy": _cross_entropy, "cross_entropy_grad": _cross_entropy_grad}
