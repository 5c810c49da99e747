"""A record before it is given regions: what an encoder makes of a call."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hedgerow_agent.core.kernels.call import Array, Call, Runtime, row_numbers
from hedgerow_agent.core.native.layout import MOST_PARTS

MOST_SUMS = 8
"""Sums that a call may take apart without scratch of its own; more than there will be threads to take them."""

_WORDS = 2**64


@dataclass(frozen=True, slots=True)
class Draft:
    """One kernel of the library with its operands as views, and how its work may be cut.

    `units` are cut at multiples of `grain`; `work` says roughly how many numbers are touched or multiplied, so that
    little work is not cut at all.
    """

    op: str
    operands: tuple[Array | None, ...]
    sizes: tuple[int, ...]
    units: int
    work: int
    numbers: tuple[float, ...] = ()
    grain: int = 1
    most_parts: int = MOST_PARTS  # where scratch has room for so many


class Block:
    """Numbers that change from step to step, where records can read them, and room for a few sums."""

    def __init__(self) -> None:
        self.rate: Array = np.zeros(16, np.float32)[:1]
        self.now: Array = np.zeros(2, np.uint64)  # seed and step
        self.sums: Array = np.zeros(MOST_SUMS, np.float64)  # of one call, used up before the next one begins
        self._samples: dict[int, Array] = {}

    def samples(self, count: int) -> Array:
        """Return where records find the numbers of a micro-batch's samples: after how many there are."""
        return self._samples.setdefault(count, np.zeros(1 + count, np.uint64))

    def set(self, runtime: Runtime) -> None:
        """Take over what the executor has set."""
        self.rate[0] = runtime.learning_rate
        self.now[0], self.now[1] = runtime.seed % _WORDS, runtime.step % _WORDS
        for count, numbers in self._samples.items():
            rows = row_numbers(runtime.rows)[:count]
            numbers[: 1 + len(rows)] = len(rows), *rows


Drafts = tuple[Draft, ...]
Encoder = Callable[[Call, Block], Drafts | None]
"""Makes drafts of a call, to be run one after the other, or None if the library cannot run it."""


class Room:
    """Floats of a call's scratch, handed out one after the other."""

    def __init__(self, call: Call) -> None:
        self._floats = call.scratch[: call.scratch.nbytes // 4 * 4].view(np.float32)
        self._used = 0

    @property
    def left(self) -> int:
        """How many are left."""
        return self._floats.size - self._used

    def take(self, count: int) -> Array:
        """Return the next ones; whoever takes looks before whether there are enough."""
        piece = self._floats[self._used : self._used + count]
        self._used += count
        return piece
