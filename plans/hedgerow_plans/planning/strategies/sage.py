"""SAGE (Gim and Ko 2022): checkpointing and gradient accumulation, and the cheapest mix of the two.

Checkpointing drops what is quick to compute for its size, looking at nothing but the tensor itself. Accumulation cuts
the batch; a mix is one micro-batch size with its own checkpointing.
"""

from collections.abc import Iterable

from hedgerow_plans.plan import Infeasible, Plan
from hedgerow_plans.planning.abstract.workload import Workload
from hedgerow_plans.planning.problem import Problem
from hedgerow_plans.planning.sequence import Sequence
from hedgerow_plans.planning.strategies.capacities import over_capacities
from hedgerow_plans.planning.strategies.eviction import Candidate, evict_on_demand
from hedgerow_plans.planning.strategies.limits import KeepGoing, Limits, first_that_fits, forever

NAME = "sage"


def plan(problem: Problem, limits: Limits) -> Plan | Infeasible:
    """Plan with checkpointing at the problem's own micro-batch."""
    return first_that_fits(problem, sequences(problem, limits.keep_going), NAME, limits)


def sequences(problem: Problem, keep_going: KeepGoing = forever) -> list[Sequence]:
    """Return what a row of capacities leads to, cheapest first."""
    return over_capacities(problem, schedule, keep_going)


def plan_mix(problems: Iterable[Problem], limits: Limits) -> Plan | Infeasible:
    """Return the cheapest plan over all micro-batch sizes, or the refusal that is nearest to the budget."""
    results = [plan(problem, limits) for problem in problems]
    plans = [result for result in results if isinstance(result, Plan)]
    if plans:
        return min(plans, key=lambda fit: (fit.promise.step_picojoules, fit.promise.step_nanoseconds))
    refusals = [result for result in results if isinstance(result, Infeasible)]
    return min(refusals, key=lambda refusal: refusal.needed_bytes)


def schedule(work: Workload, capacity_bytes: int) -> list[int] | None:
    """Return operation codes within a capacity, if this order of eviction finds any."""
    return evict_on_demand(work, capacity_bytes, _score)


def _score(candidate: Candidate) -> float:
    return (candidate.cost + 1) / (candidate.size + 1)
