"""One array of a dataset before it is used: mapped where it lies, or a row of pieces that are bounded in size."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from hedgerow_agent.core.kernels.call import Array

PIECE_BYTES = 256 * 1024
"""The most that is read at once, unless a single sample is larger."""


@dataclass(frozen=True, slots=True)
class Source:
    """An array in a file."""

    dtype: np.dtype[np.generic]
    row_shape: tuple[int, ...]
    pieces: Callable[[], Iterator[Array]]  # rows of it, in order
    mapped: Array | None = None  # all of it, if it can be used where it lies


@dataclass(frozen=True, slots=True)
class Part:
    """One file's share of a dataset."""

    name: str
    x: Source
    y: Source


def rows_per_piece(row_shape: tuple[int, ...], itemsize: int) -> int:
    """Return how many rows are read at once."""
    row_bytes = itemsize * int(np.prod(row_shape, dtype=np.int64))
    return max(1, PIECE_BYTES // max(1, row_bytes))


def of_array(array: Array) -> Source:
    """Return the source for an array that is mapped, or small."""
    rows = rows_per_piece(array.shape[1:], array.dtype.itemsize)

    def pieces() -> Iterator[Array]:
        return (array[first : first + rows] for first in range(0, len(array), rows))

    return Source(array.dtype, array.shape[1:], pieces, array)
