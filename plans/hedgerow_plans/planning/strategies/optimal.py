"""Ours: recomputation and paging at the least energy within the budget, with a proven bound and the gap to it.

The bound covers every plan of this graph, micro-batch and order of first computations, with any number of
recomputations and page-ins anywhere in the body; it does not cover other orders, other micro-batches or other layouts
of the residents. It needs the extra `planner`, so nothing on a device imports this module.

What the other strategies have is where the search starts. The search plans for
bytes that are live at once; where its plan cannot be laid out in that many, it is repaired for a little less.
"""

from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Row
from dataclasses import dataclass, replace

from hedgerow_plans.plan import Infeasible, Plan
from hedgerow_plans.planning.abstract.workload import weigh
from hedgerow_plans.planning.body import Body, body_of
from hedgerow_plans.planning.bounds import refusal, working_set_bytes
from hedgerow_plans.planning.layout import Effort
from hedgerow_plans.planning.lowering import lower
from hedgerow_plans.planning.optimal.demand import on_demand
from hedgerow_plans.planning.optimal.improve import Improver, fill
from hedgerow_plans.planning.optimal.leanest import leanest
from hedgerow_plans.planning.optimal.repair import repair
from hedgerow_plans.planning.optimal.search import Options, Search, Standing
from hedgerow_plans.planning.optimal.timeline import Timeline
from hedgerow_plans.planning.problem import Problem
from hedgerow_plans.planning.sequence import Sequence, straight, trace
from hedgerow_plans.planning.strategies import dtr, keep_all, melon, sage, sqrt_n, tte
from hedgerow_plans.planning.strategies.limits import Limits, forever

NAME = "optimal"

_MOVES, _ROUNDS = 80, 4
"""What a rung may spend; counted, so that the same request gives the same program."""

_TOLERANCE = 5e-4
"""A gap that is as good as none: far below what a class's figures are exact to."""

_LARGE, _TOLERANCE_OF_LARGE = 1000, 8e-4
"""From so many nodes on a smaller gap takes longer than it is worth."""

_CONTENT, _CONTENT_NEAR_THE_FLOOR = 1e-3, 5e-3
"""Gaps at which a round that brings nothing is the last: near the floor it is the bound that lags, not the plan."""

_NEAR_THE_FLOOR = 1.25
"""In times of the floor: where the order of refreshes, which the relaxation does not see, decides what fits."""

_STARTS = 2
"""How many plans of other strategies the search begins with."""

_LAYOUT_VISITS = 200_000
"""What a layout of a plan that was searched for may take; packing it well is cheaper than a leaner plan."""

_LAYOUT_ATTEMPTS = 5
"""How often a plan is made leaner because the layout could not pack it."""

_LEANEST_PARTS = 32
"""How closely the smallest budget with a plan is looked for, in parts of the way from the floor to keep-all."""


def plan(problem: Problem, limits: Limits, known: Row[Sequence] | None = None) -> Plan | Infeasible:
    """Plan with the least energy that the search, or any of the known sequences, has within the limits.

    Without known ones the other strategies are asked for this very budget.
    """
    attempt = _Attempt(body_of(problem), limits)
    others = _of_others(attempt.body, limits) if known is None else map(attempt.body.codes, known)
    is_large = attempt.body.work.nodes >= _LARGE  # then others are asked when there is a plan, not before
    rivals = [] if is_large else attempt.fitting(others)
    attempt.search(rivals[:_STARTS])
    if not is_large:
        attempt.consider(rivals)
    elif attempt.best is None or limits.keep_going():
        attempt.consider(attempt.fitting(others))
    if attempt.best is None:
        attempt.make_do()
    if attempt.best is None:
        lean = leanest(attempt.body.work, limits.seed, limits.keep_going, parts=_LEANEST_PARTS)
        attempt.consider(attempt.fitting([lean]))
        return attempt.bounded() or _refuse(attempt.body, lean, limits)
    return attempt.bounded() or attempt.best


def _of_others(body: Body, limits: Limits) -> Iterator[list[int]]:
    """Yield what the other strategies would run within the budget, while there is time."""
    for sequences in (keep_all.sequences, tte.sequences, sqrt_n.sequences):
        yield from map(body.codes, sequences(body.problem, limits.keep_going))
    for schedule in (melon.schedule, sage.schedule, dtr.schedule):
        room = body.room(limits.budget_bytes)
        codes = schedule(body.work, room, limits.keep_going) if limits.keep_going() else None
        if codes is not None:
            yield codes


@dataclass(slots=True)
class _Attempt:
    """The cheapest plan so far that fits, and what no plan costs less than."""

    body: Body
    limits: Limits
    best: Plan | None = None
    cost: int | None = None  # of the best plan's body
    bound: int = 0

    def fitting(self, plans: Iterable[list[int]]) -> list[tuple[int, list[int]]]:
        """Return the plans that may fit with their costs, cheapest first."""
        most = self.body.widest_room(self.limits.budget_bytes)
        weighed = [(weigh(self.body.work, codes), codes) for codes in plans]
        return sorted((cost, codes) for (cost, peak), codes in weighed if peak <= most)

    def search(self, starts: Row[tuple[int, list[int]]]) -> None:
        """Search with proof; the first plan is laid out before more time is spent on a cheaper one."""
        state = Search(self.body.work, self._room(), None, self._options())
        if not state.is_possible():
            return
        state.start(codes for _, codes in starts)
        first = state.standing()
        self._take(first, _LAYOUT_ATTEMPTS)
        state.refine()
        self.bound = state.bound
        if state.cost != first.cost:
            in_time = self.best is None or self.limits.keep_going()
            self._take(state.standing(), _LAYOUT_ATTEMPTS if in_time else 1)

    def _options(self) -> Options:
        work, limits, room = self.body.work, self.limits, self._room()
        slack = max(0, self.body.widest_room(limits.budget_bytes) - room)
        tolerance = _TOLERANCE if work.nodes < _LARGE else _TOLERANCE_OF_LARGE
        content = _CONTENT if room >= _NEAR_THE_FLOOR * work.floor_bytes else _CONTENT_NEAR_THE_FLOOR
        return Options(limits.seed, _MOVES, _ROUNDS, tolerance, content, slack, limits.keep_going)

    def _room(self) -> int:
        """Return the bytes to plan for; at the floor itself the last rounding is left to the layout."""
        room, widest = (room(self.limits.budget_bytes) for room in (self.body.room, self.body.widest_room))
        return widest if room < self.body.work.floor_bytes else room

    def _take(self, standing: Standing, attempts: int) -> None:
        """Lay out what was found; what cannot be laid out is repaired for a little less room until it can."""
        codes, cost, room = standing.codes, standing.cost or 0, self._room()
        for attempt in range(attempts):
            if codes is None or (self.cost is not None and cost >= self.cost):
                return
            over = self._lay_out(codes, cost)
            if over <= 0:
                return
            room -= max(over, room // 256) << max(0, attempt - 1)
            codes, cost = self._leaner(codes, room)

    def _leaner(self, codes: Row[int], room: int) -> tuple[Row[int] | None, int]:
        """Return a plan like the given one for less room; it is quick, and is done even when time is up."""
        work, limits = self.body.work, self.limits
        line = Timeline(work, codes)
        if not repair(line, room, forever):
            return None, 0
        fill(line, room, forever)
        improver = Improver(work, room, None, line.codes, limits.seed)
        moves = _MOVES * _LARGE // max(_LARGE, 4 * work.nodes)  # each takes as long as the graph
        for _ in range(moves if limits.keep_going() else 0):
            improver.move(limits.keep_going)
        return improver.best, improver.best_cost

    def make_do(self) -> None:
        """Find any plan where nothing could be laid out so far: run on demand in less and less room."""
        room = self.body.room(self.limits.budget_bytes)
        for sixteenths in range(16, 2, -1):
            codes = on_demand(self.body.work, room * sixteenths // 16, 1.0, forever)
            if codes is not None and self._lay_out(codes, weigh(self.body.work, codes)[0]) <= 0:
                return

    def consider(self, rivals: Row[tuple[int, list[int]]]) -> None:
        """Take the first sequence that is cheaper than the best and can be laid out, if there is one."""
        for cost, codes in rivals:
            if (self.cost is not None and cost >= self.cost) or self._lay_out(codes, cost) <= 0:
                return

    def _lay_out(self, codes: Row[int], cost: int) -> int:
        """Lay a sequence out; note the plan if it fits, and return by how many bytes it does not."""
        problem, budget_bytes = self.body.problem, self.limits.budget_bytes
        effort = Effort(_LAYOUT_VISITS, enough=budget_bytes - problem.residents.bytes)
        found = lower(problem, self.body.sequence(codes), NAME, self.limits.keep_going, effort)
        over = found.promise.peak_bytes - budget_bytes
        if over <= 0 and (self.cost is None or cost < self.cost):
            self.best, self.cost = found, cost
        return over

    def bounded(self) -> Plan | None:
        """Return the best plan with the proven bound written into it."""
        if self.best is None or not self.body.problem.costs.picojoules_per_flop:
            return self.best
        outside = self.best.bounds.no_overhead_picojoules - self.body.work.base_cost * self.best.micro_batches
        least = outside + max(self.bound, self.body.work.base_cost) * self.best.micro_batches
        return replace(self.best, bounds=replace(self.best.bounds, least_picojoules=least))


def _refuse(body: Body, codes: Row[int], limits: Limits) -> Infeasible:
    """Say what the leanest plan found needs."""
    sequence = body.sequence(codes)
    needed = lower(body.problem, sequence, NAME, limits.keep_going).promise.peak_bytes
    plain = straight(body.problem)
    most = lower(body.problem, plain, NAME, limits.keep_going).promise.peak_bytes
    if most < needed:
        sequence, needed = plain, most
    answer = refusal(body.problem, sequence, trace(body.problem, sequence), needed, limits.budget_bytes)
    return replace(answer, floor_bytes=working_set_bytes(body.problem))
