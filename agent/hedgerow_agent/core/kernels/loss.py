"""Kernels of the losses; what they allocate is one number per sample."""

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


def bind_mse(call: Call) -> Bound:
    """Return the mean squared difference of each sample."""
    (predictions, targets), (losses,) = call.inputs, call.outputs
    work = ScratchCutter(call).take(predictions.shape[1:], predictions.dtype)
    flat = work.reshape(-1)

    def run() -> None:
        for number, (prediction, target) in enumerate(zip(predictions, targets, strict=True)):
            np.subtract(prediction, target, out=work)
            losses[number] = np.dot(flat, flat) / flat.size

    return run


def bind_mse_grad(call: Call) -> Bound:
    """Return 2 (prediction - target) / (elements * batch size)."""
    (predictions, targets), (output,) = call.inputs, call.outputs
    factor = 2 / (output[0].size * call.integer("batch_size", len(output)))

    def run() -> None:
        np.subtract(predictions, targets, out=output)
        np.multiply(output, factor, out=output)

    return run


def bind_bce(call: Call) -> Bound:
    """Return the mean of log(1 + exp(z)) - z t over each sample, without ever taking exp of a large number."""
    logits, targets = (array.reshape(len(array), -1) for array in call.inputs)
    (losses,) = call.outputs
    work = ScratchCutter(call).take(logits.shape[1:], logits.dtype)

    def run() -> None:
        for number, (logit, target) in enumerate(zip(logits, targets, strict=True)):
            np.absolute(logit, out=work)
            np.negative(work, out=work)
            np.exp(work, out=work)
            np.log1p(work, out=work)
            total = np.add.reduce(work)
            np.maximum(logit, 0, out=work)
            losses[number] = (total + np.add.reduce(work) - np.dot(logit, target)) / work.size

    return run


def bind_bce_grad(call: Call) -> Bound:
    """Return (sigmoid(z) - t) / (elements * batch size); the sigmoid by way of tanh, which does not overflow."""
    (logits, targets), (output,) = call.inputs, call.outputs
    factor = 1 / (output[0].size * call.integer("batch_size", len(output)))

    def run() -> None:
        np.multiply(logits, 0.5, out=output)
        np.tanh(output, out=output)
        np.add(output, 1, out=output)
        np.multiply(output, 0.5, out=output)
        np.subtract(output, targets, out=output)
        np.multiply(output, factor, out=output)

    return run


KERNELS = {
    "cross_entropy": bind_cross_entropy,
    "cross_entropy_grad": bind_cross_entropy_grad,
    "mse": bind_mse,
    "mse_grad": bind_mse_grad,
    "bce": bind_bce,
    "bce_grad": bind_bce_grad,
}
