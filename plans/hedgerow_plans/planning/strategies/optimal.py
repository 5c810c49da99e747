"""Ours: recomputation and paging at the least energy within the budget, with a proven bound and the gap to it.

The bound covers every plan of this graph, micro-batch and order of first computations, with any number of
recomputations and page-ins anywhere in the body; it does not cover other orders, other micro-batches or other layouts
of the residents. It needs the extra `planner`, so nothing on a device imports this module.
"""

from collections.abc import Sequence as Row
from dataclasses import replace

from hedgerow_plans.plan import Infeasible, Plan
from hedgerow_plans.planning.body import Body, body_of
from hedgerow_plans.planning.bounds import refusal, working_set_bytes
from hedgerow_plans.planning.lowering import lower
from hedgerow_plans.planning.optimal.leanest import leanest
from hedgerow_plans.planning.optimal.search import Options, Standing, search
from hedgerow_plans.planning.problem import Problem
from hedgerow_plans.planning.sequence import straight, trace
from hedgerow_plans.planning.strategies import STRATEGIES
from hedgerow_plans.planning.strategies.limits import Limits

NAME = "optimal"

_MOVES, _ROUNDS = 80, 4
"""What a rung may spend; counted, so that the same request gives the same program."""

_LAYOUT_ATTEMPTS = 4
"""How often the search is asked for less because the layout could not pack what it found."""

_LEANEST_PARTS = 32
"""How closely the smallest budget with a plan is looked for, in parts of the way from the floor to keep-all."""


def plan(problem: Problem, limits: Limits) -> Plan | Infeasible:
    """Plan with the least energy that the search, or any cheaper strategy, finds within the limits."""
    body = body_of(problem)
    known = [strategy(problem, limits) for strategy in STRATEGIES.values()]
    plans = [found for found in known if isinstance(found, Plan)]
    bound = body.work.base_cost
    room = body.room(limits.budget_bytes)
    for _ in range(_LAYOUT_ATTEMPTS):
        standing = _search(body, room, limits)
        bound = max(bound, standing.bound)
        if standing.codes is None:
            break
        over = _lower_into(body, standing.codes, limits, plans)
        if over <= 0:
            break
        room -= max(over, room // 16)
    if not plans:
        lean = leanest(body.work, limits.seed, limits.keep_going, parts=_LEANEST_PARTS)
        if _lower_into(body, lean, limits, plans) > 0:
            return _refuse(body, lean, limits)
    best = min(plans, key=lambda found: (found.promise.step_picojoules, found.promise.peak_bytes))
    return _bounded(body, replace(best, strategy=NAME), bound)


def _lower_into(body: Body, codes: Row[int], limits: Limits, plans: list[Plan]) -> int:
    """Lay a sequence out; note the plan if it fits, and return by how many bytes it does not."""
    found = lower(body.problem, body.sequence(codes), NAME, limits.keep_going)
    over = found.promise.peak_bytes - limits.budget_bytes
    if over <= 0:
        plans.append(found)
    return over


def _search(body: Body, room: int, limits: Limits) -> Standing:
    slack = body.widest_room(limits.budget_bytes) - room
    options = Options(limits.seed, _MOVES, _ROUNDS, keep_going=limits.keep_going, slack_bytes=slack)
    return search(body.work, room, None, options)


def _bounded(body: Body, found: Plan, bound: int) -> Plan:
    """Write the proven bound into a plan."""
    if not body.problem.costs.picojoules_per_flop:
        return found
    outside = found.bounds.no_overhead_picojoules - body.work.base_cost * found.micro_batches
    least = outside + bound * found.micro_batches
    return replace(found, bounds=replace(found.bounds, least_picojoules=least))


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
