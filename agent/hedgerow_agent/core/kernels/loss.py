"""Kernels of the cross entropy; what they allocate is one number per sample."""

import numpy as np

from hedgerow_agent.core.kernels.call import Bound, Call, ScratchCutter


def bind_cross_entropy(call: Call) -> Bound:
    """Return the loss of each sample and, if asked for, the probabilities its backward needs."""
    (logits, labels), losses = call.inputs, call.outputs[0]
    wanted = len(call.outputs) == 2
    work = call.outputs[1] if wanted else ScratchCutter(call).take(logits.shape, logits.dtype)
    samples = np.arange(len(logits))
    column = losses[:, np.newaxis]

    def run() -> None:
        np.maximum.reduce(logits, axis=1, out=losses)
        np.subtract(logits, column, out=work)
        picked = work[samples, labels]
        np.exp(work, out=work)
        np.add.reduce(work, axis=1, out=losses)
        if wanted:
            np.divide(work, column, out=work)
        np.log(losses, out=losses)
        np.subtract(losses, picked, out=losses)

    return run


def bind_cross_entropy_grad(call: Call) -> Bound:
    """Return (probabilities - one-hot labels) / batch size."""
    (probabilities, labels), (output,) = call.inputs, call.outputs
    samples = np.arange(len(probabilities))
    batch_size = call.integer("batch_size", len(probabilities))

    def run() -> None:
        np.copyto(output, probabilities)
        output[samples, labels] -= 1
        np.divide(output, batch_size, out=output)

    return run


KERNELS = {"cross_entropy": bind_cross_entropy, "cross_entropy_grad": bind_cross_entropy_grad}
