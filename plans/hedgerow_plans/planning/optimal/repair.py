"""Making a sequence fit: cut lifetimes across the fullest place until nothing overflows.

A cut ends a lifetime after its last use before the place, and brings the tensor back right before its next use, or
already where the overfull stretch ends, while its inputs may still live. The cut with the least added cost for each byte
of overflow it removes is made; a tensor that was cut before counts as dearer, so that repairs do not run in circles.
"""

import random
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass

import numpy as np

from hedgerow_plans.planning.optimal.returns import Moment, cheapest_return
from hedgerow_plans.planning.optimal.timeline import Positions, Timeline

KeepGoing = Callable[[], bool]

_BANNED = 1e6
_LONGEST = 8
"""A sequence this many times as long as the graph leads nowhere."""


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

    moves: int = 4000
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
    for _ in range(taste.moves):
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
    best, least = None, np.inf
    for tensor, position, relief, moment in _places(line, budget, place):
        factor = weight(tensor)
        found = cheapest_return(line.work, tensor, moment, least * relief / factor)
        if found is not None and (found[0] + 1) / relief * factor < least:
            least = (found[0] + 1) / relief * factor
            best = Cut(found[0], relief, tensor, position, found[1])
    return best


def cuts(line: Timeline, budget: int, place: int) -> list[Cut]:
    """Return every way to relieve a place, least cost for each byte first."""
    found = []
    for tensor, position, relief, moment in _places(line, budget, place):
        back = cheapest_return(line.work, tensor, moment, np.inf)
        if back is not None:
            found.append(Cut(back[0], relief, tensor, position, back[1]))
    return sorted(found, key=lambda cut: (cut.cost + 1) / cut.relief)


def _places(line: Timeline, budget: int, place: int) -> Iterator[tuple[int, int, float, Moment]]:
    """Yield (tensor, where it comes back, bytes of overflow removed, what is there then)."""
    over = np.maximum(line.memory - budget, 0)
    after = _stretch_end(over, place)
    moments: dict[int, Moment] = {}
    for tensor, before, following in line.spanning(place):
        size = line.work.sizes[tensor]
        for position in sorted({following, after, place + 1}) if size else ():
            if position <= following:
                if position not in moments:
                    moments[position] = moment_at(line, position)
                relief = float(np.minimum(over[before + 1 : position], size).sum())
                yield tensor, position, relief, moments[position]


def _stretch_end(over: Positions, place: int) -> int:
    fits = np.nonzero(over[place + 1 :] == 0)[0]
    return place + 1 + int(fits[0]) if len(fits) else len(over)


def moment_at(line: Timeline, position: int) -> Moment:
    """Return what there is just before a position."""
    return Moment(lambda tensor: line.is_alive(tensor, position), line.stored, line.step_at(position))


def careful_repair(
    line: Timeline, budget: int, keep_going: KeepGoing, source: random.Random | None = None, width: int = 8
) -> bool:
    """Repair so that the overflow falls with every cut: try the best few out; slower, and gets out of tight places."""
    while (overflow := _overflow(line, budget)) > 0:
        if len(line.codes) > _LONGEST * line.work.nodes or not keep_going():
            return False
        place = int(np.argmax(line.memory))
        if source is not None and source.random() < 0.5:
            place = source.choice(np.nonzero(line.memory > budget)[0].tolist())
        best, least = None, np.inf
        for number, cut in enumerate(cuts(line, budget, place)):
            if number >= width and best is not None:
                break
            score = _try_out(line, budget, cut, overflow)
            if score < least:
                best, least = cut, score
        if best is None:
            return False
        line.insert(best.position, best.codes)
        line.prune()
    return True


def _try_out(line: Timeline, budget: int, cut: Cut, overflow: float) -> float:
    mark, cost = line.mark(), line.cost
    line.insert(cut.position, cut.codes)
    line.prune()
    gain = overflow - _overflow(line, budget)
    score = (line.cost - cost + 1) / gain if gain > 0 else np.inf
    line.rollback(mark)
    return float(score)


def _overflow(line: Timeline, budget: int) -> float:
    return float(np.maximum(line.memory - budget, 0).sum())
