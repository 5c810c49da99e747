"""Vectors of ones, shared by all kernels: a sum is fastest as a product with one of them."""

from functools import cache

import numpy as np
import numpy.typing as npt

from hedgerow_agent.core.kernels.call import Array


@cache
def ones(count: int, dtype: npt.DTypeLike) -> Array:
    """Return so many ones; they cannot be overwritten."""
    vector = np.ones(count, dtype)
    vector.flags.writeable = False
    return vector
