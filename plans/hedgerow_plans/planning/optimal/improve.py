"""Cheaper plans from a plan: fill memory that is left, and ruin and recreate.

`fill` takes out repeats for which there is room after all, dearest first. `Improver` takes out a repeat for which there
is none, repairs without cutting that tensor, fills, and keeps what is cheaper; when that finds nothing more it shakes
the best plan with a noisy repair and starts over.
"""

import random
from collections.abc import Sequence

from hedgerow_plans.planning.abstract.workload import Workload
from hedgerow_plans.planning.optimal.repair import KeepGoing, Taste, repair
from hedgerow_plans.planning.optimal.timeline import Codes, Timeline


def fill(line: Timeline, budget: int, keep_going: KeepGoing) -> None:
    """Take out repeats, dearest first, as long as everything fits and nothing gets dearer."""
    moved = True
    while moved:
        moved = False
        for operation in [line.operation(position) for position in _dearest_first(line)]:
            position = line.position(operation)
            if position < 0 or not line.is_repeat(position):
                continue
            if not keep_going():
                return
            if _has_room(line, position, budget) and _try_without(line, position, budget):
                moved = True


def _dearest_first(line: Timeline) -> list[int]:
    return sorted(line.repeats(), key=lambda position: (-_value(line.work, line.codes[position]), position))


def _value(work: Workload, code: int) -> int:
    return work.costs[code] if code >= 0 else sum(work.pages[~code] or ())


def _has_room(line: Timeline, position: int, budget: int) -> bool:
    """Whether taking out a repeat may fit; what it reads may then be given up, so that much is allowed for."""
    work, code = line.work, line.codes[position]
    relief = sum(work.sizes[tensor] for tensor in work.reads[code]) if code >= 0 else 0
    for tensor, end in line.gap(position):
        if end + 1 < position and int(line.memory[end + 1 : position].max()) + work.sizes[tensor] > budget + relief:
            return False
    return True


def _try_without(line: Timeline, position: int, budget: int) -> bool:
    mark, cost = line.mark(), line.cost
    line.delete(position)
    line.prune()
    if line.peak <= budget and line.cost <= cost:
        return True
    line.rollback(mark)
    return False


class Improver:
    """Ruin and recreate from the best plan so far; one move at a time, the same moves for the same seed."""

    def __init__(self, work: Workload, budget: int, deadline: int | None, codes: Sequence[int], seed: int) -> None:
        self._budget, self._deadline = budget, deadline
        self._random = random.Random(seed)
        self._line = Timeline(work, codes)
        self.best_cost, self.best = self._line.cost, list(self._line.codes)
        self._queue: list[int] = []
        self._restarts = 0
        self._refill()

    def adopt(self, codes: Sequence[int]) -> None:
        """Go on from a better plan that somebody else found."""
        line = Timeline(self._line.work, codes)
        if line.cost < self.best_cost and self._in_time(line):
            self.best_cost, self.best, self._line = line.cost, list(line.codes), line
            self._refill()

    def move(self, keep_going: KeepGoing) -> bool:
        """Try one change; True if the best plan is better for it."""
        if not self._queue:
            return self._shake(keep_going)
        position = self._line.position(self._queue.pop())
        if position < 0 or not self._line.is_repeat(position):
            return False
        line, cost = self._line, self._line.cost
        line.commit()
        tensors = frozenset(tensor for tensor, _ in line.gap(position))
        line.delete(position)
        line.prune()
        taste = Taste(25, tensors, self._random if self._restarts else None)
        if repair(line, self._budget, keep_going, taste, cost * 1.002):
            fill(line, self._budget, keep_going)
            if line.cost < cost and self._in_time(line):
                self._refill()
                return self._note()
        line.rollback()
        return False

    def _shake(self, keep_going: KeepGoing) -> bool:
        """Force some repeats of the best plan out and let a noisy repair choose others."""
        self._restarts += 1
        line = Timeline(self._line.work, self.best)
        repeats = line.repeats()
        if not repeats:
            return False
        count = min(len(repeats), self._random.randint(1, 6))
        for operation in [line.operation(position) for position in self._random.sample(repeats, count)]:
            if (position := line.position(operation)) >= 0 and line.is_repeat(position):
                line.delete(position)
        line.prune()
        if repair(line, self._budget, keep_going, Taste(60, noise=self._random)) and self._in_time(line):
            fill(line, self._budget, keep_going)
            if self._in_time(line):
                self._line = line
                self._refill()
                return self._note()
        return False

    def _refill(self) -> None:
        """Queue every repeat, dearest last out of the list first."""
        line = self._line
        line.commit()
        self._queue = [line.operation(position) for position in reversed(_dearest_first(line))]

    def _note(self) -> bool:
        if self._line.cost >= self.best_cost:
            return False
        self.best_cost, self.best = self._line.cost, list(self._line.codes)
        return True

    def _in_time(self, line: Timeline) -> bool:
        return self._deadline is None or line.time <= self._deadline


def finish(line: Timeline, budget: int, keep_going: KeepGoing) -> Codes:
    """Fill a plan that fits and return its operations."""
    fill(line, budget, keep_going)
    return list(line.codes)
