"""Offsets for byte intervals in time: no two that live at once may share a byte, and the top should be low.

The bound is the largest sum of bytes live at once; no assignment lies below it. Several orders are tried, each interval
going to the lowest place that is free for all of its life; after each, what lies too high takes the place of others
until all have one (`ejection`), first below the bound, then as low as can be had; at last a search places intervals
exactly (`packing`). All of it ends as soon as the top meets what is proven, when its visits are used up, or when nobody
wants to wait any longer: the lowest layout so far is returned.

An interval is compared with those that live beside it and with no others, so that a long sequence of short lives takes
little longer than its length.

Sizes come rounded to the arena's alignment, so offsets are aligned as well.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import groupby

from hedgerow_plans.planning import packing
from hedgerow_plans.planning.ejection import Ejection, neighbours
from hedgerow_plans.planning.packing import Interval

__all__ = ["QUICK", "Effort", "Interval", "Layout", "lay_out", "max_live"]


@dataclass(frozen=True, slots=True)
class Effort:
    """What a layout may take, counted so that it ends the same way on every machine, and when it is good enough."""

    visits: int = 60_000  # of intervals beside one that looks for another place: a tenth of a second or two
    columns: int = 1_000_000  # passed by the exact search: about a tenth of a second
    enough: int = 0  # a top at or below it is taken at once, even if there may be a lower one


QUICK = Effort()


@dataclass(frozen=True, slots=True)
class Layout:
    """An offset for each interval, the highest byte used, and what no layout can do without."""

    offsets: tuple[int, ...]
    top: int
    bound: int  # bytes live at once
    proven: int  # the bound, or more where the search showed that nothing lower exists

    @property
    def optimal(self) -> bool:
        """Whether no layout is lower."""
        return self.top == self.proven


_Order = Callable[[Interval], tuple[int, ...]]

_ORDERS: tuple[_Order, ...] = (
    lambda interval: (-interval.bytes * interval.bytes * (interval.end - interval.start), interval.start),
    lambda interval: (-interval.bytes.bit_length(), interval.start),
    lambda interval: (-interval.bytes, interval.start),
    lambda interval: (interval.start - interval.end, -interval.bytes, interval.start),  # the pool of Melon
)


def lay_out(
    intervals: Sequence[Interval],
    keep_going: Callable[[], bool] = lambda: True,
    effort: Effort = QUICK,
) -> Layout:
    """Return the lowest layout found; the first order is always tried, the rest while time is left."""
    bound, rounded = max_live(intervals), _live_at_once(intervals)
    lowest = _Lowest(intervals, max(bound, effort.enough or rounded), effort.visits, keep_going)
    if lowest.try_orders() or lowest.sink():
        return Layout(tuple(lowest.offsets), lowest.top, bound, bound)
    placements = effort.columns // max(1, len(intervals))
    found = packing.search(intervals, rounded, lowest.top, placements, keep_going)
    if found.offsets is not None:
        lowest.take(found.offsets)
    proven = min(found.proven, lowest.top) if bound == rounded else bound  # the search packs what is spare as well
    return Layout(tuple(lowest.offsets), lowest.top, bound, proven)


class _Lowest:
    """The lowest layout so far, and the visits that are left to lower it."""

    def __init__(self, intervals: Sequence[Interval], goal: int, visits: int, keep_going: Callable[[], bool]) -> None:
        self._intervals, self._goal, self._visits, self._keep_going = intervals, goal, visits, keep_going
        self._beside = neighbours(intervals)
        self.offsets: Sequence[int] = ()
        self.top = sum(interval.bytes for interval in intervals) + 1

    def take(self, offsets: Sequence[int]) -> bool:
        """Note a layout; True if it is low enough, or nobody wants to wait for a lower one."""
        reached = _top(self._intervals, offsets)
        if reached < self.top:
            self.offsets, self.top = offsets, reached
        return self._is_enough()

    def try_orders(self) -> bool:
        """Place in every order and settle for a short while, then for longer: what goes well goes well soon."""
        starts, share = [], self._visits // (2 * len(_ORDERS))
        for order in _ORDERS:
            starts.append(_lowest_fit(self._intervals, self._beside, _ranked(self._intervals, order)))
            if self.take(starts[-1]) or self._settles(starts[-1], self._goal, share // _SHORT):
                return True
        return any(self._settles(start, self._goal, share) for start in starts)

    def sink(self) -> bool:
        """Bring the lowest layout down half of the way to the goal, and again, while visits are left."""
        failed = self._goal
        while self._visits > 0 and self.top - failed > self._goal // _NEAR and self._keep_going():
            limit = (failed + self.top) // 2
            if not self._settles(self.offsets, limit, self._visits // 2):
                failed = limit
        return self._is_enough()

    def _is_enough(self) -> bool:
        return self.top <= self._goal or not self._keep_going()

    def _settles(self, offsets: Sequence[int], limit: int, visits: int) -> bool:
        """Whether a layout can be brought below a limit; what comes of it is noted."""
        found, made = Ejection(self._intervals, self._beside, offsets).settle(limit, visits, self._keep_going)
        self._visits -= max(made, 1)
        if found is not None:
            self.take(found)
        return found is not None


_SHORT = 16
"""How many times longer the second attempt at an order lasts."""

_NEAR = 1000
"""A layout is not lowered any more when that is one part in so many."""


def max_live(intervals: Sequence[Interval]) -> int:
    """Return the most bytes needed at one time; what is topmost then is at best what has most to spare."""
    sparing: list[tuple[int, int]] = []  # negative spare bytes and end of life of what is or was there
    most = 0
    for moment, live in _live_at_moments(intervals, lambda item: heappush(sparing, (-item.spare, item.end))):
        while sparing and sparing[0][1] <= moment:
            heappop(sparing)
        most = max(most, live + (sparing[0][0] if sparing else 0))
    return most


def _live_at_once(intervals: Sequence[Interval]) -> int:
    """Return the largest sum of bytes at one time, spare ones included."""
    return max((live for _, live in _live_at_moments(intervals)), default=0)


def _live_at_moments(
    intervals: Sequence[Interval], begins: Callable[[Interval], object] = lambda _: None
) -> Iterator[tuple[int, int]]:
    """Yield every moment at which lives begin and the bytes live then; what begins is told before."""
    living = [item for item in intervals if item.end > item.start]
    ends = sorted((item.end, item.bytes) for item in living)
    live = ended = 0
    for moment, group in groupby(sorted(living, key=_start), key=_start):
        for item in group:
            begins(item)
            live += item.bytes
        while ended < len(ends) and ends[ended][0] <= moment:
            live -= ends[ended][1]
            ended += 1
        yield moment, live


def _start(interval: Interval) -> int:
    return interval.start


def _ranked(intervals: Sequence[Interval], order: _Order) -> list[int]:
    return [index for _, index in sorted((order(interval), index) for index, interval in enumerate(intervals))]


def _top(intervals: Sequence[Interval], offsets: Sequence[int]) -> int:
    return max((offset + item.bytes - item.spare for offset, item in zip(offsets, intervals, strict=True)), default=0)


def _lowest_fit(intervals: Sequence[Interval], beside: Sequence[Sequence[int]], order: Iterable[int]) -> list[int]:
    """Place intervals one after the other, each as low as those that have a place leave room."""
    taken: list[tuple[int, int] | None] = [None] * len(intervals)
    for index in order:
        size, offset = intervals[index].bytes, 0
        for low, high in sorted([place for at in beside[index] if (place := taken[at])]):
            if low - offset >= size:
                break
            offset = max(offset, high)
        taken[index] = (offset, offset + size)
    return [place[0] if place else 0 for place in taken]
