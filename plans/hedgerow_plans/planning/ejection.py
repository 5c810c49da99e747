"""Packing below a limit by local search: what does not fit takes a place, and what lies there must find another.

Most of a layout is easy; few intervals decide whether it meets the limit. So a move looks at one interval and those
that live beside it, and leaves everything else where it is: it takes as long as the interval has neighbours, however
many intervals there are. An interval goes where those it puts out weigh least. Whatever was put out weighs more from
then on, so that no two of them chase each other for ever.
"""

import math
import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from hedgerow_plans.planning.packing import Interval

_HEAVIER = 1.2
"""By what factor an interval weighs more each time it is put out."""

_NOWHERE = -1


def neighbours(intervals: Sequence[Interval]) -> list[list[int]]:
    """Return, by interval, those that live at some time when it does."""
    beside: list[list[int]] = [[] for _ in intervals]
    living: list[int] = []
    for index in sorted(range(len(intervals)), key=lambda index: intervals[index].start):
        start = intervals[index].start
        living = [other for other in living if intervals[other].end > start]
        if intervals[index].end > start:
            beside[index] += living
            for other in living:
                beside[other].append(index)
            living.append(index)
    return beside


class Ejection:
    """Offsets of the intervals that have a place, and those that are still without."""

    def __init__(self, intervals: Sequence[Interval], beside: Sequence[Sequence[int]], offsets: Sequence[int]) -> None:
        self._beside = beside
        self._sizes = [item.bytes for item in intervals]
        self._spares = [item.spare for item in intervals]
        self._unit = math.gcd(*self._sizes) or 1
        self._highest: list[int] = []  # offsets at which an interval just ends below the limit
        self._offsets = list(offsets)
        self._weights = [item.bytes * (item.end - item.start) + 1.0 for item in intervals]
        self._source = random.Random(0)

    def settle(self, limit: int, visits: int, keep_going: Callable[[], bool]) -> tuple[list[int] | None, int]:
        """Return offsets with nothing above the limit, or None if no place was found for all; and the visits made."""
        unit, offsets = self._unit, self._offsets  # all offsets stay as aligned as the sizes are
        self._highest = [
            (limit + spare) // unit * unit - size for size, spare in zip(self._sizes, self._spares, strict=True)
        ]
        homeless = [index for index, offset in enumerate(offsets) if offset > self._highest[index]]
        for index in homeless:
            offsets[index] = _NOWHERE
        made = 0
        while homeless and made < visits and keep_going():
            index = homeless.pop(self._source.randrange(len(homeless)))
            made += len(self._beside[index]) + 1
            homeless += self._place(index)
        return (None if homeless else offsets), made

    def _place(self, index: int) -> list[int]:
        """Give an interval the place where it puts out least; return what it put out."""
        offsets, sizes, size = self._offsets, self._sizes, self._sizes[index]
        placed = [at for at in self._beside[index] if offsets[at] >= 0]
        low = self._least_wanted(placed, size, self._highest[index])
        high = low + size
        out = [at for at in placed if offsets[at] < high and low < offsets[at] + sizes[at]]
        for at in out:
            offsets[at] = _NOWHERE
            self._weights[at] *= _HEAVIER
        offsets[index] = low
        return out

    def _least_wanted(self, placed: Sequence[int], size: int, highest: int) -> int:
        """Return the offset where what lies there weighs least, as low as possible."""
        offsets, sizes, weights = self._offsets, self._sizes, self._weights
        starts = sorted([(offsets[at], weights[at]) for at in placed])
        ends = sorted([(offsets[at] + sizes[at], weights[at]) for at in placed])
        lows, highs = [low for low, _ in starts], [high for high, _ in ends]
        begun = [0.0, *accumulate([weight for _, weight in starts])]
        over = [0.0, *accumulate([weight for _, weight in ends])]
        places = {0, highest, *highs, *[low - size for low in lows]}
        return min(
            [
                (begun[bisect_left(lows, place + size)] - over[bisect_right(highs, place)], place)
                for place in places
                if 0 <= place <= highest
            ]
        )[1]
