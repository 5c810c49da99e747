"""Making a sequence fit: cut lifetimes across the fullest place until nothing overflows.

A cut ends a lifetime after its last use before the place, and brings the tensor back right before its next use, or
already where the overfull stretch ends, while its inputs may still live. The cut with the least added cost for each
byte of overflow it removes is made; a tensor that was cut before counts as dearer, so that repairs do not go round.
"""

import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass

import numpy as np

from hedgerow_plans.planning.abstract.workload import Workload
from hedgerow_plans.planning.optimal.returns import Moment, cheapest_return
from hedgerow_plans.planning.optimal.timeline import Positions, Span, Timeline

KeepGoing = Callable[[], bool]

_BANNED = 1e6
_LONGEST = 8
"""A sequence this many times as long as the graph leads nowhere."""


_MOVES_PER_NODE = 4


@dataclass(frozen=True, slots=True)
class Cut:
    """One way to relieve a place."""

    cost: int
    relief: float
    tensor: int
    position: int  # where the tensor comes back
    codes: list[int]


@dataclass(frozen=True, slots=True)
class Taste:
    """What makes one repair differ from the next."""

    moves: int | None = None  # None: a few for each node
    banned: Set[int] = frozenset()
    noise: random.Random | None = None

    def weight(self, tensor: int, cuts: int) -> float:
        """Return by what factor a cut of a tensor counts as dearer."""
        weight = 1.0 + cuts
        if tensor in self.banned:
            weight *= _BANNED
        if self.noise is not None:
            weight *= self.noise.uniform(0.6, 1.6)
        return weight


PLAIN = Taste()


def repair(line: Timeline, budget: int, keep_going: KeepGoing, taste: Taste = PLAIN, ceiling: float = np.inf) -> bool:
    """Cut until everything fits; False if it is stuck, or dearer than the ceiling."""
    times: dict[int, int] = {}
    for _ in range(taste.moves or 60 + _MOVES_PER_NODE * line.work.nodes):
        place = int(np.argmax(line.memory)) if line.codes else 0
        if line.peak <= budget:
            return line.cost <= ceiling
        if len(line.codes) > _LONGEST * line.work.nodes or line.cost > ceiling or not keep_going():
            return False
        cut = _best_cut(line, budget, place, lambda tensor: taste.weight(tensor, times.get(tensor, 0)))
        if cut is None:
            return False
        times[cut.tensor] = times.get(cut.tensor, 0) + 1
        line.insert(cut.position, cut.codes)
        line.prune()
    return False


def _best_cut(line: Timeline, budget: int, place: int, weight: Callable[[int], float]) -> Cut | None:
    """Return the cut with the least cost for each byte of overflow it removes on balance, or else in itself."""
    overflow = _Overflow(line, budget, place)
    best, least, second, least_of_second = None, np.inf, None, np.inf
    for floor, factor, span in sorted(_ranked(line, overflow, weight)):
        if floor >= least:
            break
        for position, relief in overflow.returns(span):
            found = cheapest_return(line.work, span[0], overflow.moment(position), least * relief / factor)
            if found is None:
                continue
            gain = relief - overflow.added(span[0], position, found[1])
            if gain > 0 and (found[0] + 1) / gain * factor < least:
                least = (found[0] + 1) / gain * factor
                best = Cut(found[0], gain, span[0], position, found[1])
            elif gain <= 0 and best is None and (found[0] + 1) / relief * factor < least_of_second:
                least_of_second = (found[0] + 1) / relief * factor
                second = Cut(found[0], relief, span[0], position, found[1])
    return best or second


def _ranked(
    line: Timeline, overflow: "_Overflow", weight: Callable[[int], float]
) -> Iterator[tuple[float, float, Span]]:
    """Yield what can be cut, with the least that a cut of it may cost for each byte."""
    for span in line.spanning(overflow.place):
        if line.work.sizes[span[0]]:
            factor = weight(span[0])
            relief = overflow.relief(span[0], span[1], span[2])
            yield (_least_return(line, span[0]) + 1) / relief * factor, factor, span


def _least_return(line: Timeline, tensor: int) -> int:
    """Return what nothing that brings a tensor back costs less than."""
    again, pages = line.work.costs[line.work.maker[tensor]], line.work.pages[tensor]
    return again if pages is None else min(again, pages[1] + (0 if line.stored(tensor) else pages[0]))


def cuts(line: Timeline, budget: int, place: int) -> list[Cut]:
    """Return every way to relieve a place, least cost for each byte first."""
    overflow, found = _Overflow(line, budget, place), []
    for span in [span for span in line.spanning(place) if line.work.sizes[span[0]]]:
        for position, relief in overflow.returns(span):
            back = cheapest_return(line.work, span[0], overflow.moment(position), np.inf)
            if back is not None:
                found.append(Cut(back[0], relief, span[0], position, back[1]))
    return sorted(found, key=lambda cut: (cut.cost + 1) / cut.relief)


class _Overflow:
    """Where a sequence overflows, and how much of that a cut removes."""

    def __init__(self, line: Timeline, budget: int, place: int) -> None:
        self.place, self._line, self._budget = place, line, budget
        over = line.memory - budget
        hot = np.nonzero(over > 0)[0]
        self._hot: list[int] = hot.tolist()
        self._hot_bytes = np.concatenate([[0], over[hot]])
        self._relieved: dict[int, Positions] = {}
        self._after = self._stretch_end()
        self._moments: dict[int, Moment] = {}

    def _stretch_end(self) -> int:
        at = bisect_right(self._hot, self.place)
        end = self.place + 1
        while at < len(self._hot) and self._hot[at] == end:
            at, end = at + 1, end + 1
        return end

    def relief(self, tensor: int, before: int, position: int) -> float:
        """Return the bytes of overflow that go away if a tensor is gone from after `before` until `position`."""
        low, high = bisect_right(self._hot, before), bisect_left(self._hot, position)
        total = self._relieved_by(self._line.work.sizes[tensor])
        return float(total[high] - total[low])

    def _relieved_by(self, size: int) -> Positions:
        """Return, by number of overfull positions from the left, what a cut of that many bytes relieves."""
        if size not in self._relieved:
            self._relieved[size] = np.cumsum(np.minimum(self._hot_bytes, size))
        return self._relieved[size]

    def added(self, tensor: int, position: int, codes: Sequence[int]) -> float:
        """Return the bytes of new overflow while a tensor is brought back at a position."""
        if len(codes) < 2:
            return 0.0
        work = self._line.work
        room = self._budget - self._line.across(position) + work.sizes[tensor]
        return sum(max(0, used - room) for used in _chain_bytes(work, codes))

    def returns(self, span: Span) -> Iterator[tuple[int, float]]:
        """Yield where a tensor may come back, and the bytes of overflow removed."""
        tensor, before, following = span
        for position in dict.fromkeys((following, self._after, self.place + 1)):
            if position <= following:
                yield position, self.relief(tensor, before, position)

    def moment(self, position: int) -> Moment:
        """Return what there is just before a position."""
        if position not in self._moments:
            self._moments[position] = moment_at(self._line, position)
        return self._moments[position]


def _chain_bytes(work: Workload, codes: Sequence[int]) -> Iterator[int]:
    """Yield the bytes that operations in a row have in use of their own: what they make lives until they read it."""
    last = {tensor: number for number, code in enumerate(codes) if code >= 0 for tensor in work.reads[code]}
    made: set[int] = set()
    for number, code in enumerate(codes):
        made.update(work.makes[code] if code >= 0 else (~code,))
        yield sum(work.sizes[tensor] for tensor in made) + (work.scratch[code] if code >= 0 else 0)
        made -= {tensor for tensor in made if last.get(tensor, number + 1) <= number}


def moment_at(line: Timeline, position: int) -> Moment:
    """Return what there is just before a position."""
    step = line.step_at(position) if line.work.is_fenced else 0
    return Moment(lambda tensor: line.is_alive(tensor, position), line.stored, step)


def careful_repair(
    line: Timeline, budget: int, keep_going: KeepGoing, source: random.Random | None = None, width: int = 8
) -> bool:
    """Repair so that the overflow falls with every cut: try the best few out; slower, and gets out of tight places."""
    while (over := overflow(line, budget)) > 0:
        if len(line.codes) > _LONGEST * line.work.nodes or not keep_going():
            return False
        place = int(np.argmax(line.memory))
        if source is not None and source.random() < 0.5:
            place = source.choice(np.nonzero(line.memory > budget)[0].tolist())
        best, least = None, np.inf
        for number, cut in enumerate(cuts(line, budget, place)):
            if number >= width and best is not None:
                break
            score = _try_out(line, budget, cut, over)
            if score < least:
                best, least = cut, score
        if best is None:
            return False
        line.insert(best.position, best.codes)
        line.prune()
    return True


def _try_out(line: Timeline, budget: int, cut: Cut, over: float) -> float:
    mark, cost = line.mark(), line.cost
    line.insert(cut.position, cut.codes)
    line.prune()
    gain = over - overflow(line, budget)
    score = (line.cost - cost + 1) / gain if gain > 0 else np.inf
    line.rollback(mark)
    return float(score)


def overflow(line: Timeline, budget: int) -> float:
    """Return by how many bytes a sequence overflows, added up over its operations."""
    return float(np.maximum(line.memory - budget, 0).sum())
