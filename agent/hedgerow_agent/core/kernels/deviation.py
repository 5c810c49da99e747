"""What every normalisation by statistics of a channel does with a variance."""

import numpy as np

from hedgerow_agent.core.kernels.call import Array

EPSILON = 1e-5


def set_factor(factor: Array, weight: Array, variance: Array, epsilon: float) -> None:
    """Set weight / deviation."""
    np.add(variance, epsilon, out=factor)
    np.sqrt(factor, out=factor)
    np.divide(weight, factor, out=factor)


def divide_by_deviation(values: Array, variance: Array, epsilon: float, deviation: Array) -> None:
    """Divide in place, with room for the deviation."""
    np.add(variance, epsilon, out=deviation)
    np.sqrt(deviation, out=deviation)
    np.divide(values, deviation, out=values)
