"""Orders of rows that are computed wherever one is asked for a piece of them, and never stored.

A row number is taken as the place in a rectangle that is as square as possible. In each round one coordinate is moved
by a random amount that the other and a key decide: a Feistel network, which can be undone, so no two places become one.
The rectangle has a few more places than there are rows; what comes to lie on one of those is moved on until it does
not.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hedgerow_agent.core.kernels.call import RowNumbers, Rows
from hedgerow_agent.core.random_bits import generator, mix

_ROUNDS = 12
"""Four are enough for a long order (Luby and Rackoff); so many make each order of a few numbers equally likely."""

_Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Shuffled:
    """The numbers below a count in an order that a few keys decide, or a stretch of it; takes no memory to speak of."""

    count: int  # of the whole order, at least 1
    keys: tuple[np.uint64, ...]  # one for each round
    positions: range  # those of the stretch

    @classmethod
    def of(cls, count: int, *key: str | int) -> "Shuffled":
        """Return the numbers below `count` in an order given by a key, such as a seed and a name."""
        return cls(count, tuple(generator(*key).random_raw(_ROUNDS)), range(count))

    def stretch(self, first: int, end: int) -> "Shuffled":
        """Return what lies between two positions."""
        return Shuffled(self.count, self.keys, self.positions[first:end])

    def __len__(self) -> int:
        """Return how many numbers there are."""
        return len(self.positions)

    def __getitem__(self, chosen: Rows, /) -> RowNumbers:
        """Return the numbers at some positions, counted from 0."""
        asked = np.arange(*chosen.indices(len(self))) if isinstance(chosen, slice) else chosen
        numbers = self._moved((asked + self.positions.start).astype(np.uint64))
        while (outside := numbers >= self.count).any():
            numbers[outside] = self._moved(numbers[outside])
        return numbers.astype(np.intp)

    def _moved(self, places: _Words) -> _Words:
        """Return where places of the rectangle come to lie."""
        width = math.isqrt(self.count - 1) + 1
        height = -(-self.count // width)
        sides = (np.uint64(width), np.uint64(height))
        moving, resting = places % sides[0], places // sides[0]
        for turn, key in enumerate(self.keys):
            amounts = resting + key
            mix(amounts)  # to half a word each, so that no sum overflows, which would make two places one
            amounts += moving
            amounts %= sides[turn % 2]
            moving, resting = resting, amounts
        return moving + resting * sides[0]
