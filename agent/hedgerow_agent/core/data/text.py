"""Samples as lines of text: numbers with commas between them, the label or the targets last.

A first line of names is passed over. How the numbers of a line become a sample is the model's business: they are in the
order in which the sample's axes count.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from hedgerow_agent.core.data.source import Part, Source, rows_per_piece
from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.samples import SampleShape, Targets, as_type

LONGEST_LINE = 1 << 24
"""A line beyond this is no line."""

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Columns:
    """Which numbers of a line are the sample, and which are what it is compared with."""

    sample: int
    targets: int
    whole: bool  # whether targets are labels

    @classmethod
    def of(cls, samples: SampleShape) -> "Columns":
        """Return the columns that a model's lines have."""
        count = int(np.prod(samples.shape))
        match samples.targets:
            case Targets.LABELS:
                return cls(count, 1, whole=True)
            case Targets.NUMBERS:
                return cls(count, int(np.prod(samples.output)), whole=False)
            case Targets.SAMPLES:
                return cls(count, 0, whole=False)


def open_csv(path: Path, samples: SampleShape) -> Part:
    """Return the part of a CSV file; nothing of it is read yet."""
    columns = Columns.of(samples)
    x_dtype = np.dtype(samples.dtype)
    y_dtype = np.dtype(np.int32 if columns.whole or not columns.targets else np.float32)
    y_shape = () if columns.whole or not columns.targets else samples.output

    def x_pieces() -> Iterator[Array]:
        for table in _tables(path, columns):
            x = as_type(
                table[:, : columns.sample], x_dtype, f"A token of {path}", "tokens are whole numbers of 32 bits"
            )
            yield x.reshape(-1, *samples.shape)

    def y_pieces() -> Iterator[Array]:
        for table in _tables(path, columns):
            yield _targets(path, table[:, columns.sample :], columns, y_dtype).reshape(-1, *y_shape)

    return Part(str(path), Source(x_dtype, samples.shape, x_pieces), Source(y_dtype, y_shape, y_pieces))


def numbers_in(line: str) -> Numbers:
    """Return the numbers of one line; raise ValueError if there is anything else."""
    return np.array([float(word) for word in line.split(",")], np.float64)


def _tables(path: Path, columns: Columns) -> Iterator[Numbers]:
    """Yield the numbers of some lines at a time."""
    rows, first = rows_per_piece((columns.sample + columns.targets,), 8), 1
    with path.open(encoding="utf-8", newline="") as file:
        lines = _lines(path, file)
        names = next(lines, "")
        if _is_numbers(names):
            lines = itertools.chain([names], lines)
        while chunk := list(itertools.islice(lines, rows)):
            yield _table(path, chunk, columns, first)
            first += len(chunk)


def _lines(path: Path, file: IO[str]) -> Iterator[str]:
    while line := file.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise BadInput(f"A line of {path} has more than {LONGEST_LINE} characters; is it a text file?")
        if line.strip():
            yield line


def _is_numbers(line: str) -> bool:
    try:
        return bool(numbers_in(line).size)
    except ValueError:
        return False


def _table(path: Path, lines: list[str], columns: Columns, first: int) -> Numbers:
    wanted = columns.sample + columns.targets
    try:
        table = np.loadtxt(lines, delimiter=",", dtype=np.float64, ndmin=2, comments=None)
    except ValueError as error:
        raise BadInput(
            f"Samples {first} to {first + len(lines) - 1} of {path} are not rows of {wanted} numbers ({error}); "
            "correct the file."
        ) from None
    if table.shape[1] != wanted:
        made = f"{columns.sample} for the sample and {columns.targets} for what it is compared with"
        raise BadInput(f"A line of {path} has {table.shape[1]} numbers and the model wants {wanted} ({made}).")
    return table


def _targets(path: Path, table: Numbers, columns: Columns, dtype: "np.dtype[np.generic]") -> Array:
    if not columns.targets:
        return np.zeros(len(table), dtype)
    return as_type(table, dtype, f"A label of {path}", "labels are whole numbers of 32 bits and stand last in a line")
