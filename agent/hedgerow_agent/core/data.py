"""Datasets: arrays from an npz file, a split that never overlaps, and batches found from the step number alone.

Sizes are read and checked before anything is loaded. Arrays stored without compression are mapped from the file, so
that only the pages of the samples in use are in memory; compressed ones are loaded whole, if they are small enough.
"""

import math
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.kernels.call import Array, RowNumbers
from hedgerow_agent.core.random_bits import permutation

DEFAULT_LIMIT_BYTES = 256 * 1024 * 1024
"""Largest array that is loaded into memory; mapped ones may be larger."""

_LOCAL_HEADER_BYTES = 30
_FEWEST_SAMPLES = 7


@dataclass(frozen=True, slots=True)
class Dataset:
    """Samples (numbers, or whole numbers that stand for tokens) and their labels or targets."""

    x: npt.NDArray[np.float32] | npt.NDArray[np.int32]
    y: npt.NDArray[np.int32] | npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Split:
    """Row numbers for training, for checkpoints and for the figures before and after; no row is in two of them."""

    train: RowNumbers
    validation: RowNumbers
    test: RowNumbers


@dataclass(frozen=True, slots=True)
class _Header:
    """What an array in the file says about itself."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    fortran_order: bool
    stored_at: int | None  # where the numbers begin in the file; None if they are compressed

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def load_dataset(path: Path, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Dataset:
    """Read a dataset file, or raise one sentence about what is wrong with it."""
    try:
        with zipfile.ZipFile(path) as archive:
            x = _read(path, archive, "x", limit_bytes)
            y = _read(path, archive, "y", limit_bytes)
    except (OSError, zipfile.BadZipFile, zlib.error, ValueError, EOFError, NotImplementedError) as error:
        raise BadInput(f"The dataset {path} cannot be read ({error}); make it again with numpy.savez.") from error
    return _checked(path, x, y)


def split(count: int, seed: int) -> Split:
    """Split rows 70/15/15 in an order given by the seed."""
    if count < _FEWEST_SAMPLES:
        raise BadInput(f"The dataset has {count} samples; a split needs at least {_FEWEST_SAMPLES}.")
    order = permutation(count, seed, "split")
    held = count * 15 // 100
    return Split(order[2 * held :], order[:held], order[held : 2 * held])


class Batches:
    """The batches of a run: a fresh order for every epoch; the rest that fills no batch waits for the next epoch."""

    def __init__(self, rows: RowNumbers, batch_size: int, seed: int) -> None:
        if len(rows) < batch_size:
            raise BadInput(f"There are {len(rows)} training samples and a batch is {batch_size}; lower the batch size.")
        self._rows, self._batch_size, self._seed = rows, batch_size, seed
        self.per_epoch = len(rows) // batch_size
        self._epoch = -1
        self._order = rows

    def rows(self, step: int) -> RowNumbers:
        """Return the rows of a step, counted from 0 through all epochs."""
        epoch, position = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            self._order = self._rows[permutation(len(self._rows), self._seed, "epoch", epoch)]
            self._epoch = epoch
        return self._order[position * self._batch_size : (position + 1) * self._batch_size]


def _read(path: Path, archive: zipfile.ZipFile, name: str, limit_bytes: int) -> Array:
    try:
        member = archive.getinfo(f"{name}.npy")
    except KeyError:
        raise BadInput(f"The dataset {path} has no array {name!r}; it needs x (samples) and y (labels).") from None
    header = _header(path, archive, member)
    if header.dtype.hasobject:
        raise BadInput(f"The array {name!r} of {path} holds Python objects; store plain numbers.")
    if header.stored_at is not None and header.bytes:
        return _mapped(path, header, header.stored_at)
    if header.bytes > limit_bytes:
        raise BadInput(
            f"The array {name!r} of {path} has {header.bytes} bytes, compressed; at most {limit_bytes} are loaded. "
            "Store it uncompressed (numpy.savez), then it is mapped instead."
        )
    with archive.open(member) as stream:
        return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))


def _mapped(path: Path, header: _Header, offset: int) -> Array:
    mapped: Array = np.memmap(
        path, header.dtype, mode="r", offset=offset, shape=header.shape, order="F" if header.fortran_order else "C"
    )
    return mapped


def _header(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> _Header:
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran_order, dtype = read(stream)
        length = stream.tell()
    start = _stored_at(path, member)
    header = _Header(shape, dtype, fortran_order, None if start is None else start + length)
    # Python objects have no size of their own; they are refused by name.
    if min(shape, default=0) < 0 or (not dtype.hasobject and length + header.bytes != member.file_size):
        raise ValueError(f"{member.filename} claims {header.bytes} bytes and has {member.file_size - length}")
    return header


def _stored_at(path: Path, member: zipfile.ZipInfo) -> int | None:
    """Return where an uncompressed member begins; its local header may be longer than the directory says."""
    if member.compress_type != zipfile.ZIP_STORED:
        return None
    with path.open("rb") as file:
        file.seek(member.header_offset)
        header = file.read(_LOCAL_HEADER_BYTES)
    lengths = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    return member.header_offset + _LOCAL_HEADER_BYTES + lengths


def _checked(path: Path, x: Array, y: Array) -> Dataset:
    if x.dtype not in (np.float32, np.int32) or x.ndim < 2:
        wanted = "it must be float32 (int32 for tokens) with one row per sample"
        raise BadInput(f"x of {path} is {x.dtype} {list(x.shape)}; {wanted}.")
    if y.dtype == np.float32 and y.ndim > 1 and len(y) == len(x):
        return Dataset(x, y)
    if y.dtype.kind not in "iu" or y.shape != (len(x),):
        raise BadInput(f"y of {path} is {y.dtype} {list(y.shape)}; it must be one whole number per sample ({len(x)}).")
    if y.size and (y.min() < 0 or y.max() > np.iinfo(np.int32).max):
        raise BadInput(f"y of {path} holds labels from {y.min()} to {y.max()}; labels count from 0.")
    return Dataset(x, np.array(y, dtype=np.int32))
