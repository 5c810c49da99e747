"""Offsets for byte intervals in time: no two that live at once may share a byte, and the top should be low.

The bound is the largest sum of bytes live at once; no assignment lies below it. Several orders are tried, each interval
going to the lowest place that is free for all of its life; then whatever lies highest is moved to the front of the best
order, again and again; then a search places intervals exactly (`packing`). All of it ends as soon as the top meets what
is proven, when its moves are used up, or when nobody wants to wait any longer: the lowest layout so far is returned.

Sizes come rounded to the arena's alignment, so offsets are aligned as well.
"""

import random
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from hedgerow_plans.planning import packing
from hedgerow_plans.planning.packing import Interval

__all__ = ["QUICK", "Effort", "Interval", "Layout", "lay_out", "max_live"]


@dataclass(frozen=True, slots=True)
class Effort:
    """What a layout may take, counted so that it ends the same way on every machine, and when it is good enough."""

    visits: int = 5_000_000  # of placed intervals, while moving to the front: some tenths of a second
    placements: int = 2_000  # by the exact search: about a tenth of a second
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
    lambda interval: (-interval.bytes, interval.start),
    lambda interval: ((interval.start - interval.end) * interval.bytes, interval.start),
    lambda interval: (interval.start - interval.end, -interval.bytes, interval.start),  # the pool of Melon
    lambda interval: (interval.start, -interval.end),
    lambda interval: (interval.start, -interval.bytes),
    lambda interval: (-interval.end, interval.start),
)


def lay_out(
    intervals: Sequence[Interval],
    keep_going: Callable[[], bool] = lambda: True,
    effort: Effort = QUICK,
) -> Layout:
    """Return the lowest layout found; the first order is always tried, the rest while time is left."""
    bound = max_live(intervals)
    best: list[int] = []
    top = sum(interval.bytes for interval in intervals) + 1
    for offsets in _attempts(intervals, effort.visits):
        reached = _top(intervals, offsets)
        if reached < top:
            best, top = offsets, reached
        if top <= max(bound, effort.enough) or not keep_going():
            return Layout(tuple(best), top, bound, bound)
    found = packing.search(intervals, bound, top, effort.placements, keep_going)
    if found.offsets is not None:
        best, top = list(found.offsets), _top(intervals, found.offsets)
    return Layout(tuple(best), top, bound, min(found.proven, top))


def max_live(intervals: Sequence[Interval]) -> int:
    """Return the largest sum of bytes at one time."""
    changes: dict[int, int] = {}
    for interval in intervals:
        changes[interval.start] = changes.get(interval.start, 0) + interval.bytes
        changes[interval.end] = changes.get(interval.end, 0) - interval.bytes
    return max(accumulate(change for _, change in sorted(changes.items())), default=0)


def _attempts(intervals: Sequence[Interval], most_visits: int) -> Iterator[list[int]]:
    """Yield the offsets of each order, then of the best order with the highest intervals moved to the front."""
    best_order: list[int] = []
    lowest = None
    for order in _ORDERS:
        ranked = [index for _, index in sorted((order(interval), index) for index, interval in enumerate(intervals))]
        offsets = _lowest_fit(intervals, ranked)
        yield offsets
        top = _top(intervals, offsets)
        if lowest is None or top < lowest:
            lowest, best_order, best_offsets = top, ranked, offsets
    if best_order:
        yield from _promoted(intervals, best_order, best_offsets, most_visits)


def _promoted(
    intervals: Sequence[Interval], order: list[int], offsets: list[int], most_visits: int
) -> Iterator[list[int]]:
    """Yield layouts of other orders: the highest go to the front; where that repeats itself, chance helps."""
    source, seen = random.Random(0), {tuple(order)}
    best, lowest = order, _top(intervals, offsets)
    for _ in range(0, most_visits, max(1, len(intervals) ** 2 // 2)):
        top = _top(intervals, offsets)
        if top < lowest:
            best, lowest = order, top
        highest = [index for index in order if offsets[index] + intervals[index].bytes == top]
        order = _to_the_front(order, highest)
        if tuple(order) in seen:
            order = _shaken(intervals, best, highest, source)
        seen.add(tuple(order))
        offsets = _lowest_fit(intervals, order)
        yield offsets


def _to_the_front(order: list[int], chosen: Sequence[int]) -> list[int]:
    moved = set(chosen)
    return [*chosen, *(index for index in order if index not in moved)]


def _shaken(
    intervals: Sequence[Interval], order: list[int], highest: Sequence[int], source: random.Random
) -> list[int]:
    """Return the order with a few of those that live beside a highest interval moved to its front."""
    top = intervals[source.choice(highest)]
    beside = [index for index in order if intervals[index].start < top.end and top.start < intervals[index].end]
    return _to_the_front(order, source.sample(beside, min(len(beside), source.randint(1, 3))))


def _top(intervals: Sequence[Interval], offsets: Sequence[int]) -> int:
    return max((offset + item.bytes for offset, item in zip(offsets, intervals, strict=True)), default=0)


def _lowest_fit(intervals: Sequence[Interval], order: Sequence[int]) -> list[int]:
    offsets = [0] * len(intervals)
    placed: list[tuple[int, int, int, int]] = []  # offset, end of its bytes, and its life; sorted
    for index in order:
        item = intervals[index]
        offsets[index] = _lowest_gap(placed, item)
        insort(placed, (offsets[index], offsets[index] + item.bytes, item.start, item.end))
    return offsets


def _lowest_gap(placed: Sequence[tuple[int, int, int, int]], new: Interval) -> int:
    first, last, size = new.start, new.end, new.bytes
    candidate = 0
    for offset, end in [(offset, end) for offset, end, start, until in placed if start < last and first < until]:
        if offset - candidate >= size:
            break
        candidate = max(candidate, end)
    return candidate
