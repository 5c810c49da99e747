"""A file without a name that holds an array made piece by piece; it vanishes with the last view of it."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.kernels.call import Array


class Spool:
    """Where arrays are copied to that cannot be mapped as they are; together they stay below a limit."""

    def __init__(self, folder: Path | None, limit_bytes: int) -> None:
        self._folder = folder
        self._limit_bytes = limit_bytes
        self.used_bytes = 0
        self.largest_piece_bytes = 0

    def store(
        self, name: str, pieces: Iterator[Array], row_shape: tuple[int, ...], dtype: "np.dtype[np.generic]"
    ) -> Array:
        """Copy an array to storage and return it, mapped."""
        with tempfile.TemporaryFile(dir=self._folder) as file:
            rows = 0
            for piece in pieces:
                stored = np.ascontiguousarray(piece, dtype)
                self._count(name, piece.nbytes, stored.nbytes)
                file.write(stored.data)
                rows += len(piece)
            file.flush()
            if not rows or 0 in row_shape:
                return np.zeros((rows, *row_shape), dtype)
            array: Array = np.memmap(file, dtype, mode="r", shape=(rows, *row_shape))
            return array

    def _count(self, name: str, piece_bytes: int, stored_bytes: int) -> None:
        self.used_bytes += stored_bytes
        self.largest_piece_bytes = max(self.largest_piece_bytes, piece_bytes)
        if self.used_bytes > self._limit_bytes:
            raise BadInput(
                f"The dataset {name} has more than {self._limit_bytes} bytes to be copied; store it uncompressed in "
                "one file (numpy.savez), then it is mapped instead."
            )
