"""Offsets for byte intervals in time: no two that live at once may share a byte, and the top should be low.

The bound is the largest sum of bytes live at once; no assignment lies below it. Several orders are tried, each interval
going to the lowest place that is free for all of its life, and the search ends early when the top meets the bound.
Sizes come rounded to the arena's alignment, so offsets are aligned as well.
"""

from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class Interval:
    """Bytes needed from time `start` until before time `end`."""

    bytes: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Layout:
    """An offset for each interval, the highest byte used, and the bytes no layout can do without."""

    offsets: tuple[int, ...]
    top: int
    bound: int


_Order = Callable[[Interval], tuple[int, ...]]

_ORDERS: tuple[_Order, ...] = (
    lambda interval: (interval.start, -interval.end),
    lambda interval: (-interval.bytes, interval.start),
    lambda interval: (interval.start - interval.end, -interval.bytes),
    lambda interval: ((interval.start - interval.end) * interval.bytes, interval.start),
    lambda interval: (interval.start, -interval.bytes),
    lambda interval: (-interval.end, interval.start),
)


def lay_out(intervals: Sequence[Interval], keep_going: Callable[[], bool] = lambda: True) -> Layout:
    """Return the lowest layout found; the first order is always tried, the rest while time is left."""
    bound = max_live(intervals)
    best = Layout((), sum(interval.bytes for interval in intervals) + 1, bound)
    for order in _ORDERS:
        ranked = sorted((order(interval), index) for index, interval in enumerate(intervals))
        offsets = _lowest_fit(intervals, [index for _, index in ranked])
        top = max((offset + item.bytes for offset, item in zip(offsets, intervals, strict=True)), default=0)
        if top < best.top:
            best = Layout(tuple(offsets), top, bound)
        if best.top == bound or not keep_going():
            break
    return best


def max_live(intervals: Sequence[Interval]) -> int:
    """Return the largest sum of bytes at one time."""
    changes: dict[int, int] = {}
    for interval in intervals:
        changes[interval.start] = changes.get(interval.start, 0) + interval.bytes
        changes[interval.end] = changes.get(interval.end, 0) - interval.bytes
    return max(accumulate(change for _, change in sorted(changes.items())), default=0)


def _lowest_fit(intervals: Sequence[Interval], order: Sequence[int]) -> list[int]:
    offsets = [0] * len(intervals)
    placed: list[tuple[int, int]] = []  # offset and index, sorted
    for index in order:
        offsets[index] = _lowest_gap(intervals, placed, intervals[index])
        insort(placed, (offsets[index], index))
    return offsets


def _lowest_gap(intervals: Sequence[Interval], placed: Sequence[tuple[int, int]], new: Interval) -> int:
    candidate = 0
    for offset, index in placed:
        other = intervals[index]
        if other.start < new.end and new.start < other.end:
            if offset - candidate >= new.bytes:
                break
            candidate = max(candidate, offset + other.bytes)
    return candidate
