"""Real handwritten digits that ship with scikit-learn, as float32 images between 0 and 1."""

from functools import cache

from hedgerow_agent.core.data import Dataset
from sampledata.images import load_digits


@cache
def digits() -> Dataset:
    """Return 1,797 images of 8 by 8 pixels and their labels."""
    images = load_digits()
    return Dataset(images.x, images.y)
