"""Exact packing: intervals in time get offsets below a limit, or it is shown that none exist.

Think of time as columns and of offsets as heights. Any packing can be pushed down until every interval rests on the
ground or on another one, so it is found by filling the lowest stretch of the skyline: either an interval starts there,
or the stretch is wasted up to its lower neighbour. A branch dies as soon as some column's height and the bytes still to
come exceed the limit. The least such excess over all dead branches is the next limit worth trying; until then nothing
exists, which is the proof. The search counts its placements, so that it ends the same way on every machine.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Interval:
    """Bytes needed from time `start` until before time `end`; the last ones, if spare, may lie above the top."""

    bytes: int
    start: int
    end: int
    spare: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """Offsets below the known top, if there are any, and the height below which nothing exists."""

    offsets: tuple[int, ...] | None
    proven: int


def search(
    intervals: Sequence[Interval], bound: int, top: int, most_placements: int, keep_going: Callable[[], bool]
) -> Found:
    """Look for a packing lower than `top`, from the proven bound upwards."""
    skyline = _Skyline(intervals, most_placements, keep_going)
    proven = bound
    while proven < top:
        outcome = skyline.fill(proven)
        if outcome is not None:
            return Found(tuple(outcome), proven)
        if skyline.tired:
            return Found(None, proven)
        proven = skyline.next_limit
    return Found(None, top)


@dataclass(slots=True)
class _Branch:
    """A stretch of the skyline to be filled, and the choices that are left for it."""

    first: int
    last: int  # exclusive
    height: int
    choices: Iterator[int]
    frontier: tuple[int, int]  # height and first column of the last placement
    raised: list[tuple[int, int]] = field(default_factory=list)  # column, height before
    placed: int | None = None


_WASTE = -1


class _Skyline:
    """Heights by column, and what is still to be placed."""

    def __init__(self, intervals: Sequence[Interval], most_placements: int, keep_going: Callable[[], bool]) -> None:
        moments = sorted({moment for item in intervals for moment in (item.start, item.end)})
        column = {moment: index for index, moment in enumerate(moments)}
        self._sizes = [item.bytes for item in intervals]
        self._spans = [(column[item.start], column[item.end]) for item in intervals]
        self._columns = max(len(moments) - 1, 0)
        self._starting: list[list[int]] = [[] for _ in range(self._columns)]
        for index, (first, last) in sorted(enumerate(self._spans), key=lambda pair: self._rank(pair[0])):
            if last > first:
                self._starting[first].append(index)
        self._placements_left = most_placements
        self._keep_going = keep_going
        self.tired = False
        self.next_limit = 0

    def fill(self, limit: int) -> list[int] | None:
        """Return offsets whose top is at most the limit, or None; then `next_limit` is where to go on."""
        self._limit, self.next_limit = limit, sum(self._sizes) + 1
        self._heights = [0] * self._columns
        self._waiting = [0] * self._columns
        for size, (first, last) in zip(self._sizes, self._spans, strict=True):
            for column in range(first, last):
                self._waiting[column] += size
        self._offsets: list[int | None] = [None if last > first else 0 for first, last in self._spans]
        self._left = sum(offset is None for offset in self._offsets)
        return self._descend()

    def _rank(self, index: int) -> tuple[int, int, int]:
        first, last = self._spans[index]
        return (first - last, -self._sizes[index], index)

    def _descend(self) -> list[int] | None:
        trail: list[_Branch] = []
        if self._left:
            trail.append(self._lowest_stretch((-1, 0)))
        while self._left and trail:
            if self._placements_left <= 0 or not self._keep_going():
                self.tired = True
                return None
            branch = trail[-1]
            self._undo(branch)
            choice = next(branch.choices, None)
            if choice is None:
                trail.pop()
            elif not self._apply(branch, choice):
                self._undo(branch)
            elif self._left:
                trail.append(self._lowest_stretch(self._frontier(branch)))
        return None if self._left else [offset or 0 for offset in self._offsets]

    def _frontier(self, branch: _Branch) -> tuple[int, int]:
        return branch.frontier if branch.placed is None else (branch.height, self._spans[branch.placed][0])

    def _lowest_stretch(self, frontier: tuple[int, int]) -> _Branch:
        """Return the lowest stretch of columns that still wait for something.

        What rests at one height is placed from left to right, so what is left of the last placement is only wasted.
        """
        heights, waiting = self._heights, self._waiting
        height = min(heights[column] for column in range(self._columns) if waiting[column])
        first = next(at for at in range(self._columns) if heights[at] == height and waiting[at])
        last = first
        while last < self._columns and heights[last] <= height:
            last += 1
        while first and heights[first - 1] <= height:
            first -= 1
        behind = frontier[0] == height and last <= frontier[1]
        choices = iter((_WASTE,)) if behind else self._choices(first, last)
        return _Branch(first, last, height, choices, frontier)

    def _choices(self, first: int, last: int) -> Iterator[int]:
        """Yield what fits into a stretch, longest first; of those that look alike only one; then waste."""
        fitting = [
            index
            for column in range(first, last)
            for index in self._starting[column]
            if self._offsets[index] is None and self._spans[index][1] <= last
        ]
        alike = set()
        for index in sorted(fitting, key=self._rank):
            look = (*self._spans[index], self._sizes[index])
            if look not in alike:
                alike.add(look)
                yield index
        yield _WASTE

    def _apply(self, branch: _Branch, choice: int) -> bool:
        """Place an interval or waste the stretch; tell whether all columns can still stay below the limit."""
        self._placements_left -= 1
        if choice == _WASTE:
            return self._waste(branch)
        first, last = self._spans[choice]
        size, height = self._sizes[choice], branch.height
        branch.raised = [(column, self._heights[column]) for column in range(first, last)]
        branch.placed = choice
        self._offsets[choice] = height
        self._left -= 1
        worst = 0
        for column in range(first, last):
            self._waiting[column] -= size
            self._heights[column] = height + size
            worst = max(worst, height + size + self._waiting[column])
        return self._within(worst)

    def _waste(self, branch: _Branch) -> bool:
        heights = self._heights
        walls = [heights[at] for at in (branch.first - 1, branch.last) if 0 <= at < self._columns]
        if not walls:
            return False
        level = min(walls)
        columns = range(branch.first, branch.last)
        branch.raised = [(column, heights[column]) for column in columns]
        for column in columns:
            heights[column] = level
        return self._within(max((level + self._waiting[at] for at in columns if self._waiting[at]), default=0))

    def _within(self, reached: int) -> bool:
        if reached > self._limit:
            self.next_limit = min(self.next_limit, reached)
        return reached <= self._limit

    def _undo(self, branch: _Branch) -> None:
        if branch.placed is not None:
            size = self._sizes[branch.placed]
            for column in range(*self._spans[branch.placed]):
                self._waiting[column] += size
            self._offsets[branch.placed] = None
            self._left += 1
            branch.placed = None
        for column, height in branch.raised:
            self._heights[column] = height
        branch.raised = []
