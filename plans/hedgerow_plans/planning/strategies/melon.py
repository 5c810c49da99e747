"""Melon (Wang et al. 2022): evict by tensor size times remaining life per recomputation time.

The time counts the whole chain of ancestors that are missing now, and is looked at afresh before every eviction. Frees
come right after the last use, and the layout has the lifetime-aware pool among its orders; micro-batches are the
ladder's: each of them is a problem of its own.
"""

from hedgerow_plans.plan import Infeasible, Plan
from hedgerow_plans.planning.abstract.workload import Workload
from hedgerow_plans.planning.problem import Problem
from hedgerow_plans.planning.sequence import Sequence
from hedgerow_plans.planning.strategies.capacities import over_capacities
from hedgerow_plans.planning.strategies.eviction import Candidate, evict_on_demand
from hedgerow_plans.planning.strategies.limits import KeepGoing, Limits, first_that_fits, forever

NAME = "melon"


def plan(problem: Problem, limits: Limits) -> Plan | Infeasible:
    """Plan with progressive recomputation."""
    return first_that_fits(problem, sequences(problem, limits.keep_going), NAME, limits)


def sequences(problem: Problem, keep_going: KeepGoing = forever) -> list[Sequence]:
    """Return what a row of capacities leads to, cheapest first."""
    return over_capacities(problem, schedule, keep_going)


def schedule(work: Workload, capacity_bytes: int) -> list[int] | None:
    """Return operation codes within a capacity, if this order of eviction finds any."""
    return evict_on_demand(work, capacity_bytes, _score)


def _score(candidate: Candidate) -> float:
    return (candidate.chain_cost + 1) / ((candidate.size + 1) * (candidate.remaining_steps + 1))
