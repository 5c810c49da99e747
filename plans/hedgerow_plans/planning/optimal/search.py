"""The any-time search: cheap starts, then bound and guide from the relaxation, and ruin and recreate in between.

All state is here: the best plan and the best bound so far are at hand whenever somebody asks. Nothing reads a clock:
`keep_going` says when to stop, and without it moves and solver nodes are counted, so that the same problem, seed and
limit give the same plan.
"""

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from hedgerow_plans.planning.abstract.workload import Workload
from hedgerow_plans.planning.optimal.demand import on_demand
from hedgerow_plans.planning.optimal.exact import MOST_NODES, cheapest
from hedgerow_plans.planning.optimal.guided import follow
from hedgerow_plans.planning.optimal.improve import Improver, fill
from hedgerow_plans.planning.optimal.placing import settle
from hedgerow_plans.planning.optimal.point import point
from hedgerow_plans.planning.optimal.relaxation import Relaxation
from hedgerow_plans.planning.optimal.repair import KeepGoing, Taste, careful_repair, repair
from hedgerow_plans.planning.optimal.solver import Problem
from hedgerow_plans.planning.optimal.stages import last_purposes, peaks, stage_ends
from hedgerow_plans.planning.optimal.timeline import Codes, Timeline

_PATIENCES = (0.5, 1.0)
_ROUGH = 20


def _forever() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Options:
    """What the search may spend, and when it is content."""

    seed: int = 0
    moves: int = 300  # ruin and recreate, after each round of the relaxation
    rounds: int = 8  # of the relaxation
    tolerance: float = 2e-4  # a gap that is as good as none
    content: float = 0.0  # a gap at which a round that brings nothing is the last
    slack_bytes: int = 0  # a plan may exceed the budget by this much all the same, so the bound must allow for it
    keep_going: KeepGoing = _forever
    report: Callable[["Standing"], None] = lambda _standing: None


@dataclass(frozen=True, slots=True)
class Standing:
    """The best plan so far, if there is one, and what no plan costs less than."""

    codes: Sequence[int] | None
    cost: int | None
    bound: int

    @property
    def gap(self) -> float:
        """How far the plan may be from the optimum, in parts of the bound."""
        if self.cost is None:
            return float("inf")
        return (self.cost - self.bound) / self.bound if self.bound else float(self.cost > 0)


@dataclass(frozen=True, slots=True, order=True)
class _Overflow:
    """By how many bytes a sequence overflows, and the ends of stages that make the relaxation see it."""

    bytes: int
    ends: tuple[int, ...]


@dataclass(slots=True)
class Search:
    """A search under way."""

    work: Workload
    budget: int
    deadline: int | None
    options: Options
    best: Codes | None = None
    cost: int | None = None
    bound: int = 0
    ends: set[int] = field(default_factory=set)
    prominence: float = 0.1
    tightened: dict[int, int] = field(default_factory=dict)
    exhausted: bool = False  # the relaxation has nothing more to say
    improver: Improver | None = None
    sketched: set[tuple[int, ...]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.bound = self.work.base_cost

    def standing(self) -> Standing:
        """Return the best so far."""
        return Standing(self.best, self.cost, self.bound)

    def is_possible(self) -> bool:
        """Whether budget and deadline are not below what is needed in any case."""
        in_time = self.deadline is None or self.deadline >= self.work.base_time
        return in_time and self.budget >= self.work.floor_bytes

    def is_done(self) -> bool:
        """Whether the gap is small enough."""
        return self.standing().gap <= self.options.tolerance

    def offer(self, line: Timeline) -> bool:
        """Take a plan that fits if it is cheaper than the best."""
        if line.peak > self.budget or (self.deadline is not None and line.time > self.deadline):
            return False
        if self.cost is not None and line.cost >= self.cost:
            return False
        self.best, self.cost = list(line.codes), line.cost
        self.options.report(self.standing())
        return True

    def start(self, known: Iterable[Sequence[int]] = ()) -> None:
        """Find first plans: those that are known already, greedy repair, and running on demand."""
        going = self.options.keep_going
        for codes in known:
            self._finish(Timeline(self.work, codes))
        self._on_demand(_PATIENCES[0], going)
        self._from(Timeline(self.work, range(self.work.nodes)), careful=False)
        if not self.is_done():
            self._on_demand(_PATIENCES[1], going)
        if self.best is None:
            self._from(Timeline(self.work, range(self.work.nodes)), careful=True)
        if self.best is None:
            self._insist()

    def _on_demand(self, patience: float, going: KeepGoing) -> None:
        demanded = on_demand(self.work, self.budget, patience, going)
        if demanded is not None:
            self._finish(Timeline(self.work, demanded))

    def _insist(self) -> None:
        """Nothing fits yet: repair with noise until something does."""
        source = random.Random(self.options.seed)
        for attempt in range(12):
            if self.best is not None or not self.options.keep_going():
                return
            line = Timeline(self.work, range(self.work.nodes))
            if attempt % 2:
                fits = careful_repair(line, self.budget, self.options.keep_going, source)
            else:
                fits = repair(line, self.budget, self.options.keep_going, Taste(noise=source))
            if fits:
                self._finish(line)

    def _from(self, line: Timeline, *, careful: bool) -> None:
        """Repair a sequence and offer what comes out."""
        fits = careful_repair if careful else repair
        if fits(line, self.budget, self.options.keep_going):
            self._finish(line)

    def _finish(self, line: Timeline) -> None:
        if line.peak <= self.budget:
            line.commit()
            self.offer(line)
            fill(line, self.budget, self.options.keep_going)
            self.offer(line)

    def relax(self) -> None:
        """Solve the relaxation once: raise the bound, follow its choices, and refine it where they overflow."""
        if not self.ends:
            self.ends = set(peaks(self.work, self.budget, last_purposes(self.work), self.prominence))
        budget = self.budget + self.options.slack_bytes
        relaxation = Relaxation(self.work, budget, self.deadline, stage_ends(self.work, self.ends))
        guide = bool(self.tightened)
        problem = Problem(relaxation, self.options.keep_going, self.tightened)
        solved = problem.without_integrality()
        if not guide:
            self._raise(solved.bound)
        if solved.choices is not None and not self.is_done():
            self._sketch(relaxation, solved.choices)
            start = point(relaxation, self.best) if self.best is not None and not guide else None
            solved = problem.with_integrality(start, self._close_enough(), partial(self._sketch, relaxation))
            if not guide:
                self._raise(solved.bound)
        if solved.choices is None or self.is_done():
            self.exhausted = not guide
            self.tightened = {}
            return
        self._follow(relaxation, solved.choices)

    def _close_enough(self) -> float:
        """Return the gap at which the solver's work is done: far from the end a rough answer leads on sooner."""
        gap = self.standing().gap
        return max(self.options.tolerance / 4, gap / _ROUGH if math.isfinite(gap) else 0.0)

    def _raise(self, bound: int) -> None:
        if bound > self.bound:
            self.bound = bound
            self.options.report(self.standing())

    def _sketch(self, relaxation: Relaxation, choices: Sequence[bool]) -> None:
        """Make a plan of what the solver has so far: rough, but a plan, and it tells what not to look at."""
        codes = tuple(follow(relaxation, choices) or ())
        if codes and codes not in self.sketched and len(codes) < 2 * self.work.nodes:
            self.sketched.add(codes)
            line = Timeline(self.work, codes)
            settle(line, self.budget, self.options.keep_going)
            self._from(line, careful=False)

    def _follow(self, relaxation: Relaxation, choices: Sequence[bool]) -> None:
        codes = follow(relaxation, choices)
        if codes is None:
            self.exhausted = True
            return
        line = Timeline(self.work, codes)
        settle(line, self.budget, self.options.keep_going)
        codes, overfull = list(line.codes), self._overfull(line)
        self._from(line, careful=False)
        if overfull:
            self._from(Timeline(self.work, codes), careful=True)
        self._refine(relaxation, overfull)

    def _overfull(self, line: Timeline) -> dict[int, _Overflow]:
        """Return, by step, how a sequence overflows at or before it."""
        over: dict[int, _Overflow] = {}
        for position in np.nonzero(line.memory > self.budget)[0].tolist():
            step = min(line.step_at(position), self.work.nodes - 1)
            extra = int(line.memory[position]) - self.budget
            if step not in over or extra > over[step].bytes:
                over[step] = _Overflow(extra, (step + 1, *self._begin_of_place(line, position, extra)))
        return over

    def _begin_of_place(self, line: Timeline, position: int, extra: int) -> Iterator[int]:
        """Yield the end of the stage before a refresh: where the youngest of the large tensors beside it is born.

        What was made before a stage and stays, or is read by its last step, is there whenever the stage refreshes.
        """
        if line.is_repeat(position):
            beside = [tensor for tensor, _, _ in line.spanning(position) if self.work.sizes[tensor] * 4 >= extra]
            yield from [max(self.work.maker[tensor] for tensor in beside) + 1] if beside else []

    def _refine(self, relaxation: Relaxation, overfull: dict[int, _Overflow]) -> None:
        """End stages where the worst overflow of each wants it; where they all do already, take bytes off the guide."""
        worst: dict[int, _Overflow] = {}
        for step, overflow in overfull.items():
            if not self.ends.issuperset(overflow.ends):
                stage = relaxation.stage[step]
                worst[stage] = max(worst.get(stage, overflow), overflow)
        if worst:
            self.ends.update(*(overflow.ends for overflow in worst.values()))
            self.tightened = {}
        elif overfull:
            for step, overflow in overfull.items():
                self.tightened[step] = self.tightened.get(step, 0) + overflow.bytes
        else:
            self._look_closer()

    def _look_closer(self) -> None:
        self.tightened = {}
        before = len(self.ends)
        while len(self.ends) == before and self.prominence > 1e-3:
            self.prominence /= 2
            self.ends |= set(peaks(self.work, self.budget, last_purposes(self.work), self.prominence))
        self.exhausted = len(self.ends) == before

    def improve(self, moves: int) -> None:
        """Ruin and recreate for a number of moves."""
        if self.best is None:
            return
        if self.improver is None:
            self.improver = Improver(self.work, self.budget, self.deadline, self.best, self.options.seed)
        else:
            self.improver.adopt(self.best)
        for _ in range(moves):
            if self.is_done() or not self.options.keep_going():
                return
            if self.improver.move(self.options.keep_going):
                self.take(self.improver.best)

    def refine(self) -> None:
        """Go on from the first plans, round by round: relax, then improve."""
        for round_number in range(self.options.rounds):
            before = self.standing()
            if self.is_done() or not self.options.keep_going():
                return
            if not self.exhausted:
                self.relax()
            if round_number == 0 and self.work.nodes <= MOST_NODES and not self.is_done():
                self.enumerate()
            self.improve(self.options.moves)
            if (before.cost, before.bound) == (self.cost, self.bound) and before.gap <= self.options.content:
                return

    def enumerate(self) -> None:
        """Settle a small workload by looking at all its states."""
        base = self.work.base_cost
        ceiling = None if self.cost is None or self.deadline is not None else self.cost - base
        proof = cheapest(self.work, self.budget, ceiling, self.options.keep_going)
        if proof is None:
            return
        if not self.options.slack_bytes:
            self.bound = max(self.bound, base + proof.overhead)
        if proof.codes is not None:
            self.take(proof.codes)
        self.options.report(self.standing())

    def take(self, codes: Sequence[int]) -> bool:
        """Take a plan that somebody else found."""
        return self.offer(Timeline(self.work, codes))


def search(
    work: Workload, budget: int, deadline: int | None, options: Options, known: Iterable[Sequence[int]] = ()
) -> Standing:
    """Search until the gap is small, the limits are reached, or `keep_going` says stop."""
    state = Search(work, budget, deadline, options)
    if state.is_possible():
        state.start(known)
        state.refine()
    return state.standing()
