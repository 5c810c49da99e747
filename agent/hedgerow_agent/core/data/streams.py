"""Samples as they come: readings of a sensor, one line or one value of a generator at a time, cut into windows.

Memory is one window, whatever the length of the stream. Nothing here waits by itself or knows a clock: whoever follows
a file says what to do at its end.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

import numpy as np

from hedgerow_agent.core.data.text import LONGEST_LINE, Numbers, numbers_in
from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.samples import SampleShape, Targets

Sample = tuple[Array, int]
"""One sample in the model's shape, valid until the next, and its label (0 where the model compares with the sample)."""


class Windows:
    """Cuts a stream of readings into samples; a window's label is that of its last reading."""

    def __init__(self, samples: SampleShape, length: int = 1, hop: int | None = None) -> None:
        count = int(np.prod(samples.shape))
        if samples.targets is Targets.NUMBERS:
            raise BadInput("A stream brings labels or samples alone, and this model is compared with numbers.")
        if count % length:
            raise BadInput(f"A sample has {count} numbers, which windows of {length} readings do not make.")
        self._samples, self._hop = samples, hop or length
        self._labelled = samples.targets is Targets.LABELS
        self._window = np.zeros((length, count // length), samples.dtype)
        self.held_bytes = self._window.nbytes

    def cut(self, readings: Iterable[Numbers]) -> Iterator[Sample]:
        """Yield a sample whenever a window is full: the first one, and one more after every hop."""
        due = len(self._window)
        for number, reading in enumerate(readings, 1):
            label = self._take(reading, number)
            due -= 1
            if due == 0:
                due = self._hop
                yield self._window.reshape(self._samples.shape), label

    def _take(self, reading: Numbers, number: int) -> int:
        """Put one reading at the end of the window and return its label."""
        wanted = self._window.shape[1] + self._labelled
        if len(reading) != wanted:
            raise BadInput(f"Reading {number} has {len(reading)} numbers and the window wants {wanted}.")
        if not np.isfinite(reading).all():
            raise BadInput(f"Reading {number} holds NaN or infinity; repair the sensor, or leave it out.")
        self._window[:-1] = self._window[1:]
        self._window[-1] = reading[: self._window.shape[1]]
        label = reading[-1] if self._labelled else 0
        if label != int(label):
            raise BadInput(f"The label of reading {number} is {label}; labels are whole numbers and stand last.")
        return int(label)


def follow(path: Path, more: Callable[[], bool]) -> Iterator[Numbers]:
    """Yield the numbers of every whole line of a file that may grow.

    At its end `more` is asked: true means to look again, false that nothing will come. A last line without an end is
    being written and waits. A first line of names is passed over.
    """
    try:
        with path.open("rb") as file:
            yield from _lines_of_numbers(path, file, more)
    except OSError as error:
        raise BadInput(f"The stream {path} cannot be read: {error.strerror}.") from None


def _lines_of_numbers(path: Path, file: IO[bytes], more: Callable[[], bool]) -> Iterator[Numbers]:
    number, unfinished = 0, b""
    while True:
        piece = file.readline(LONGEST_LINE)
        unfinished += piece
        if len(unfinished) >= LONGEST_LINE:
            raise BadInput(f"A line of {path} has more than {LONGEST_LINE} characters; is it a text file?")
        if not unfinished.endswith(b"\n"):
            if not piece and not more():
                return
            continue
        line, unfinished = unfinished, b""
        number += 1
        if line.strip():
            found = _numbers(path, line, number)
            if found is not None:
                yield found


def _numbers(path: Path, line: bytes, number: int) -> Numbers | None:
    try:
        return numbers_in(line.decode())
    except ValueError as error:
        if number == 1:
            return None  # names of columns
        raise BadInput(f"Line {number} of {path} is not a row of numbers ({error}).") from None
