"""Bound and guide from the staged relaxation: solve it, make plans of what it says, refine it where they overflow."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from hedgerow_plans.planning.optimal.guided import follow
from hedgerow_plans.planning.optimal.incumbent import Incumbent
from hedgerow_plans.planning.optimal.placing import settle
from hedgerow_plans.planning.optimal.point import point
from hedgerow_plans.planning.optimal.relaxation import Relaxation
from hedgerow_plans.planning.optimal.solver import Problem
from hedgerow_plans.planning.optimal.stages import last_purposes, peaks, stage_ends
from hedgerow_plans.planning.optimal.timeline import Timeline

_ROUGH = 20


@dataclass(frozen=True, slots=True, order=True)
class _Overflow:
    """By how many bytes a sequence overflows, and the ends of stages that make the relaxation see it."""

    bytes: int
    ends: tuple[int, ...]


class Staged:
    """The relaxation of a search, round by round."""

    def __init__(self, plans: Incumbent) -> None:
        self.plans = plans
        self.exhausted = False  # the relaxation has nothing more to say
        self._ends: set[int] = set()
        self._prominence = 0.1
        self._tightened: dict[int, int] = {}
        self._sketched: set[tuple[int, ...]] = set()

    def relax(self) -> None:
        """Solve the relaxation once: raise the bound, follow its choices, and refine it where they overflow."""
        if not self._ends:
            self._ends = self._peaks()
        budget = self.plans.budget + self.plans.options.slack_bytes
        relaxation = Relaxation(self.plans.work, budget, self.plans.deadline, stage_ends(self.plans.work, self._ends))
        guide = bool(self._tightened)
        problem = Problem(relaxation, self.plans.options.keep_going, self._tightened)
        solved = problem.without_integrality()
        if not guide:
            self.plans.raise_bound(solved.bound)
        if solved.choices is not None and not self.plans.is_done():
            self._sketch(relaxation, solved.choices)
            start = point(relaxation, self.plans.best) if self.plans.best is not None and not guide else None
            solved = problem.with_integrality(start, self._close_enough(), partial(self._sketch, relaxation))
            if not guide:
                self.plans.raise_bound(solved.bound)
        if solved.choices is None or self.plans.is_done():
            self.exhausted = not guide
            self._tightened = {}
            return
        self._follow(relaxation, solved.choices)

    def _close_enough(self) -> float:
        """Return the gap at which the solver's work is done: far from the end a rough answer leads on sooner."""
        gap = self.plans.standing().gap
        return max(self.plans.options.tolerance / 4, gap / _ROUGH if math.isfinite(gap) else 0.0)

    def _sketch(self, relaxation: Relaxation, choices: Sequence[bool]) -> None:
        """Make a plan of what the solver has so far: rough, but a plan, and it tells what not to look at."""
        codes = tuple(follow(relaxation, choices) or ())
        if not codes or codes in self._sketched or len(codes) > 2 * self.plans.work.nodes:
            return
        self._sketched.add(codes)
        line = Timeline(self.plans.work, codes)
        if self.plans.cost is None or line.cost < self.plans.cost:
            settle(line, self.plans.budget, self.plans.options.keep_going)
            self.plans.offer_repaired(line, careful=False)

    def _follow(self, relaxation: Relaxation, choices: Sequence[bool]) -> None:
        codes = follow(relaxation, choices)
        if codes is None:
            self.exhausted = True
            return
        line = Timeline(self.plans.work, codes)
        settle(line, self.plans.budget, self.plans.options.keep_going)
        settled, overfull = list(line.codes), self._overfull(line)
        self.plans.offer_repaired(line, careful=False)
        if overfull:
            self.plans.offer_repaired(Timeline(self.plans.work, settled), careful=True)
        self._refine(relaxation, overfull)

    def _overfull(self, line: Timeline) -> dict[int, _Overflow]:
        """Return, by step, how a sequence overflows at or before it."""
        over: dict[int, _Overflow] = {}
        for position in np.nonzero(line.memory > self.plans.budget)[0].tolist():
            step = min(line.step_at(position), self.plans.work.nodes - 1)
            extra = int(line.memory[position]) - self.plans.budget
            if step not in over or extra > over[step].bytes:
                over[step] = _Overflow(extra, (step + 1, *self._begin_of_place(line, position, extra)))
        return over

    def _begin_of_place(self, line: Timeline, position: int, extra: int) -> Iterator[int]:
        """Yield the end of the stage before a refresh: where the youngest of the large tensors beside it is born.

        What was made before a stage and stays, or is read by its last step, is there whenever the stage refreshes.
        """
        if line.is_repeat(position):
            beside = [tensor for tensor, _, _ in line.spanning(position) if self.plans.work.sizes[tensor] * 4 >= extra]
            yield from [max(self.plans.work.maker[tensor] for tensor in beside) + 1] if beside else []

    def _refine(self, relaxation: Relaxation, overfull: dict[int, _Overflow]) -> None:
        """End stages where the worst overflow of each wants it; where they all do already, take bytes off the guide."""
        worst: dict[int, _Overflow] = {}
        for step, overflow in overfull.items():
            if not self._ends.issuperset(overflow.ends):
                stage = relaxation.stage[step]
                worst[stage] = max(worst.get(stage, overflow), overflow)
        if worst:
            self._ends.update(*(overflow.ends for overflow in worst.values()))
            self._tightened = {}
        elif overfull:
            for step, overflow in overfull.items():
                self._tightened[step] = self._tightened.get(step, 0) + overflow.bytes
        else:
            self._look_closer()

    def _look_closer(self) -> None:
        self._tightened = {}
        before = len(self._ends)
        while len(self._ends) == before and self._prominence > 1e-3:
            self._prominence /= 2
            self._ends |= self._peaks()
        self.exhausted = len(self._ends) == before

    def _peaks(self) -> set[int]:
        work = self.plans.work
        return set(peaks(work, self.plans.budget, last_purposes(work), self._prominence))
