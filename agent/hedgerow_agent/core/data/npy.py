"""Arrays in numpy's own form: what a header says about itself is checked before anything else is read."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from hedgerow_agent.core.data.source import Part, Source, of_array, rows_per_piece
from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.kernels.call import Array

X_SUFFIX, Y_SUFFIX = "x.npy", "y.npy"


@dataclass(frozen=True, slots=True)
class Header:
    """What an array says about itself."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    fortran_order: bool
    length: int  # of the header, in bytes

    @property
    def bytes(self) -> int:
        """Bytes of the numbers."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: IO[bytes], name: str, total_bytes: int) -> Header:
    """Read the header of an array; raise ValueError unless the rest is as long as it says."""
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran_order, dtype = read(stream)
    header = Header(shape, dtype, fortran_order, stream.tell())
    if dtype.hasobject:
        raise BadInput(f"The array {name} holds Python objects; store plain numbers.")
    if min(shape, default=0) < 0 or header.length + header.bytes != total_bytes:
        raise ValueError(f"{name} claims {header.bytes} bytes and has {total_bytes - header.length}")
    if not shape:
        raise BadInput(f"The array {name} is a single number; give it one row per sample.")
    return header


def mapped(path: Path, header: Header, offset: int) -> Source:
    """Return the numbers where they lie in a file; none at all cannot be mapped."""
    if not header.bytes:
        return of_array(np.zeros(header.shape, header.dtype))
    array: Array = np.memmap(
        path, header.dtype, mode="r", offset=offset, shape=header.shape, order="F" if header.fortran_order else "C"
    )
    return of_array(array)


def streamed(open_numbers: Callable[[], IO[bytes]], header: Header, name: str) -> Source:
    """Return numbers that have to be unpacked, piece by piece."""
    if header.fortran_order and len(header.shape) > 1:
        raise BadInput(f"The array {name} is compressed column by column; store it with numpy.ascontiguousarray.")
    rows = rows_per_piece(header.shape[1:], header.dtype.itemsize)

    def pieces() -> Iterator[Array]:
        with open_numbers() as stream:
            stream.read(header.length)
            for first in range(0, header.shape[0], rows):
                shape = (min(rows, header.shape[0] - first), *header.shape[1:])
                yield np.frombuffer(stream.read(math.prod(shape) * header.dtype.itemsize), header.dtype).reshape(shape)

    return Source(header.dtype, header.shape[1:], pieces)


def open_pair(path: Path) -> Part:
    """Return the part of NAMEx.npy and NAMEy.npy, given either."""
    stem = path.name[: -len(X_SUFFIX)]
    return Part(str(path), _open(path.with_name(stem + X_SUFFIX)), _open(path.with_name(stem + Y_SUFFIX)))


def _open(path: Path) -> Source:
    with path.open("rb") as stream:
        header = read_header(stream, str(path), path.stat().st_size)
    return mapped(path, header, header.length)
