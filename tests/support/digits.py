"""Real handwritten digits that ship with scikit-learn, as float32 images between 0 and 1."""

from functools import cache

import numpy as np
from sklearn.datasets import load_digits

from hedgerow_agent.core.data import Dataset


@cache
def digits() -> Dataset:
    """Return 1,797 images of 8 by 8 pixels and their labels."""
    bunch = load_digits()
    images = (bunch.images / 16).astype(np.float32)
    return Dataset(images.reshape(-1, 1, 8, 8), bunch.target.astype(np.int32))
