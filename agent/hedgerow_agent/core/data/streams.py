"""Samples as they come: readings of a sensor, one line or one value of a generator at a time, cut into windows.

Memory is one window, whatever the length of the stream. The readings of a window follow each other: whoever passes over
one says so, and the next window begins after it.
"""

from typing import NamedTuple

import numpy as np

from hedgerow_agent.core.data.text import Numbers
from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.samples import SampleShape, Targets, as_type

Sample = tuple[Array, int]
"""One sample in the model's shape, valid until the next, and its label (0 where the model compares with the sample)."""


class Place(NamedTuple):
    """Where a line of a stream begins: the bytes before it, and its number, counted from 1."""

    byte: int = 0
    line: int = 1


START = Place()


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
        self._places = np.zeros((length, 2), np.int64)
        self._due = length
        self.held_bytes = self._window.nbytes + self._places.nbytes

    @property
    def begin(self) -> Place:
        """Where the oldest reading of the window was."""
        byte, line = self._places[0]
        return Place(int(byte), int(line))

    def go_on(self) -> None:
        """Expect the readings of a window that a sample was made of already; the next sample is a hop after it."""
        self._due = len(self._window) + self._hop

    def add(self, reading: Numbers, place: Place = START) -> Sample | None:
        """Take one reading; return a sample if it fills a window: the first one, and one more after every hop."""
        values, label = self._checked(reading)
        self._window[:-1], self._places[:-1] = self._window[1:], self._places[1:]
        self._window[-1], self._places[-1] = values, place
        self._due -= 1
        if self._due:
            return None
        self._due = self._hop
        return self._window.reshape(self._samples.shape), label

    def skip(self) -> None:
        """Pass over a reading: no window has a gap, so the next one holds none of the readings before."""
        self._due = max(self._due - 1, len(self._window))

    def _checked(self, reading: Numbers) -> tuple[Array, int]:
        """Return a reading in the model's type, and its label."""
        width = self._window.shape[1]
        if len(reading) != width + self._labelled:
            last = ", the label last" if self._labelled else ""
            wanted = f"{width + self._labelled}{last}"
            raise BadInput(f"There are {len(reading)} numbers and a reading has {wanted}; write all, and no more.")
        values = self._samples.taken(reading[:width])
        rule = "labels are whole numbers of 32 bits and stand last"
        labels = as_type(reading[width:], np.dtype(np.int32), "A label", rule)
        self._samples.check_labels(labels)
        return values, int(labels[0]) if self._labelled else 0
