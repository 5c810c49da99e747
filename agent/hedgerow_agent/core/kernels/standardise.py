"""Kernels of features standardised with the mean and variance of everything seen so far."""

import numpy as np

from hedgerow_agent.core.kernels.call import Array, Bound, Call, ScratchCutter


def _inverse_deviation(variance: Array, epsilon: float, out: Array) -> None:
    np.add(variance, epsilon, out=out)
    np.sqrt(out, out=out)
    np.reciprocal(out, out=out)


def bind_standardise(call: Call) -> Bound:
    """Return (x - mean) / sqrt(variance + epsilon)."""
    (source, mean, variance, _), (output,) = call.inputs, call.outputs
    epsilon = call.number("epsilon", 1e-5)
    inverse = ScratchCutter(call).take(variance.shape, source.dtype)

    def run() -> None:
        _inverse_deviation(variance, epsilon, inverse)
        np.subtract(source, mean, out=output)
        np.multiply(output, inverse, out=output)

    return run


def bind_standardise_grad(call: Call) -> Bound:
    """Return dy / sqrt(variance + epsilon)."""
    (gradient, variance), (output,) = call.inputs, call.outputs
    epsilon = call.number("epsilon", 1e-5)
    inverse = ScratchCutter(call).take(variance.shape, gradient.dtype)

    def run() -> None:
        _inverse_deviation(variance, epsilon, inverse)
        np.multiply(gradient, inverse, out=output)

    return run


def bind_update_standardisation(call: Call) -> Bound:
    """Take the samples into mean and variance one by one (Welford); without any so far, the variance is one."""
    (source,), (mean, variance, count) = call.inputs, call.updates
    scratch = ScratchCutter(call)
    before, after = (scratch.take(mean.shape, source.dtype) for _ in range(2))

    def take_in(sample: Array, seen: float) -> None:
        # before = x - old mean; after = x - new mean; variance = (variance * seen + before * after) / (seen + 1)
        np.subtract(sample, mean, out=before)
        np.divide(before, seen + 1, out=after)
        np.add(mean, after, out=mean)
        np.subtract(sample, mean, out=after)
        np.multiply(before, after, out=after)
        np.multiply(variance, seen, out=variance)
        np.add(variance, after, out=variance)
        np.divide(variance, seen + 1, out=variance)

    def run() -> None:
        seen = float(count[0])
        for sample in source:
            take_in(sample, seen)
            seen += 1
        count[0] = seen

    return run


KERNELS = {
    "standardise": bind_standardise,
    "standardise_grad": bind_standardise_grad,
    "update_standardisation": bind_update_standardisation,
}
