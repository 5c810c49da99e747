"""From a path to a dataset: one file, a pair of files, or a folder of them; every mistake is one sentence."""

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from hedgerow_agent.core.data import npy
from hedgerow_agent.core.data.dataset import Dataset, Reading
from hedgerow_agent.core.data.npz import open_npz
from hedgerow_agent.core.data.source import Part, Source, of_array
from hedgerow_agent.core.data.spool import Spool
from hedgerow_agent.core.data.text import open_csv
from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.samples import SampleShape

SPOOL_LIMIT_BYTES = 4 << 30
"""Most that is copied to storage for one dataset; what is mapped may be larger."""

_LABELS = np.dtype(np.int32)
_REMEDY = "make it again with numpy.savez, or as CSV"


def load_dataset(
    path: Path,
    samples: SampleShape | None = None,
    folder: Path | None = None,
    limit_bytes: int = SPOOL_LIMIT_BYTES,
) -> Dataset:
    """Open a dataset, or raise one sentence about what is wrong with it.

    `samples` is what the model takes, which text needs to be understood. `folder` is where copies go that vanish with
    the process; the system's place for such files if absent.
    """
    try:
        parts = [_open(file, samples) for file in _files(path)]
        spool = Spool(folder, limit_bytes)
        x = _joined(path, [part.x for part in parts], parts, spool, samples)
        y = _joined(path, [_labels(part) for part in parts], parts, spool, None)
    except (OSError, zipfile.BadZipFile, zlib.error, ValueError, EOFError, NotImplementedError) as error:
        raise BadInput(f"The dataset {path} cannot be read ({error}); {_REMEDY}.") from error
    return _checked(path, x, y, Reading(spool.largest_piece_bytes, spool.used_bytes, len(parts)))


def _files(path: Path) -> list[Path]:
    """Return the files of a dataset in the order of their names, of each pair the first."""
    if not path.is_dir():
        return [path]
    found = [file for file in sorted(path.iterdir()) if file.suffix in (".npz", ".csv") or file.name.endswith("x.npy")]
    if not found:
        raise BadInput(f"The folder {path} holds no dataset: no .npz, no .csv, and no pair NAMEx.npy and NAMEy.npy.")
    return found


def _open(file: Path, samples: SampleShape | None) -> Part:
    if file.suffix == ".csv":
        if samples is None:
            raise BadInput(f"The dataset {file} is text, which only a model's samples give a shape; name the model.")
        file.stat()  # a missing file is told from an empty one now, not at the first line
        return open_csv(file, samples)
    if file.name.endswith((npy.X_SUFFIX, npy.Y_SUFFIX)):
        return npy.open_pair(file)
    return open_npz(file)


def _joined(
    path: Path, sources: Sequence[Source], parts: Sequence[Part], spool: Spool, samples: SampleShape | None
) -> Array:
    """Return one array of all parts: mapped where it lies if there is one that can be, else copied."""
    shaped = [_shaped(source, samples) for source in sources]
    first = shaped[0]
    for source, part in zip(shaped, parts, strict=True):
        if (source.dtype, source.row_shape) != (first.dtype, first.row_shape):
            raise BadInput(
                f"{part.name} holds {source.dtype} {list(source.row_shape)} and {parts[0].name} {first.dtype} "
                f"{list(first.row_shape)}; the files of a dataset must be alike."
            )
    if len(shaped) == 1 and first.mapped is not None:
        return first.mapped
    pieces = (piece for source in shaped for piece in source.pieces())
    return spool.store(str(path), pieces, first.row_shape, first.dtype)


def _labels(part: Part) -> Source:
    """Return targets as they are, and labels as a copy of them would be: as wide as the core takes them."""
    source = part.y
    if source.dtype.kind not in "iu" or source.row_shape:
        return source
    return replace(source, dtype=_LABELS, pieces=lambda: _checked_labels(part.name, source))


def _checked_labels(name: str, source: Source) -> Iterator[Array]:
    """Yield labels piece by piece; raise a sentence at the first that is none."""
    first = 0
    for piece in source.pieces():
        if piece.min() < 0 or piece.max() > np.iinfo(_LABELS).max:
            row = int(np.argmax((piece < 0) | (piece > np.iinfo(_LABELS).max)))
            raise BadInput(f"y of {name} holds the label {piece[row]} in row {first + row}; labels count from 0.")
        yield piece
        first += len(piece)


def _shaped(source: Source, samples: SampleShape | None) -> Source:
    """Return samples in the model's shape if they have as many numbers; labels as they are."""
    if samples is None or source.row_shape == samples.shape or len(source.row_shape) == len(samples.shape):
        return source
    if np.prod(source.row_shape) != np.prod(samples.shape):
        return source  # refused later, with both shapes in one sentence
    if source.mapped is not None and source.mapped.flags.c_contiguous:
        return of_array(source.mapped.reshape(-1, *samples.shape))

    def pieces() -> Iterator[Array]:
        return (piece.reshape(-1, *samples.shape) for piece in source.pieces())

    return Source(source.dtype, samples.shape, pieces)


def _checked(path: Path, x: Array, y: Array, reading: Reading) -> Dataset:
    if x.dtype not in (np.float32, np.int32) or x.ndim < 2:
        wanted = "it must be float32 (int32 for tokens) with one row per sample"
        raise BadInput(f"x of {path} is {x.dtype} {list(x.shape)}; {wanted}.")
    if not len(x):
        raise BadInput(f"The dataset {path} is empty; give it samples.")
    looked_at = [_check_finite(path, "x", x)]
    if y.dtype == np.float32 and y.ndim > 1 and len(y) == len(x):
        looked_at.append(_check_finite(path, "y", y))
    elif y.dtype.kind not in "iu" or y.shape != (len(x),):
        raise BadInput(f"y of {path} is {y.dtype} {list(y.shape)}; it must be one whole number per sample ({len(x)}).")
    else:
        looked_at += [piece.nbytes for piece in _checked_labels(str(path), of_array(y))]
    return Dataset(x, y, replace(reading, at_once_bytes=max(reading.at_once_bytes, *looked_at)))


def _check_finite(path: Path, name: str, array: Array) -> int:
    """Raise a sentence if something is no number, and return how many bytes were looked at at once."""
    if array.dtype.kind != "f":
        return 0
    first = largest = 0
    for piece in of_array(array).pieces():
        largest = max(largest, piece.nbytes)
        finite = np.isfinite(piece)
        if not finite.all():
            row = first + int(np.argwhere(~finite)[0][0])
            raise BadInput(f"{name} of {path} holds NaN or infinity in row {row}, counted from 0; remove or repair it.")
        first += len(piece)
    return largest
