"""Dynamic tensor rematerialisation (Kirisame et al. 2021): online eviction, for a budget that no plan was made for.

Dropped first is what costs least to have back (itself and the missing tensors around it), is large, and has not been
used for long. The agent can use it: it needs nothing but this package.
"""

from hedgerow_plans.plan import Infeasible, Plan
from hedgerow_plans.planning.abstract.workload import Workload
from hedgerow_plans.planning.problem import Problem
from hedgerow_plans.planning.sequence import Sequence
from hedgerow_plans.planning.strategies.capacities import over_capacities
from hedgerow_plans.planning.strategies.eviction import Candidate, evict_on_demand
from hedgerow_plans.planning.strategies.limits import KeepGoing, Limits, first_that_fits, forever

NAME = "dtr"


def plan(problem: Problem, limits: Limits) -> Plan | Infeasible:
    """Plan with eviction by cost of the neighbourhood, size and staleness."""
    return first_that_fits(problem, sequences(problem, limits.keep_going), NAME, limits)


def sequences(problem: Problem, keep_going: KeepGoing = forever) -> list[Sequence]:
    """Return what a row of capacities leads to, cheapest first."""
    return over_capacities(problem, schedule, keep_going)


def schedule(work: Workload, capacity_bytes: int) -> list[int] | None:
    """Return operation codes within a capacity, if this order of eviction finds any."""
    return evict_on_demand(work, capacity_bytes, _score)


def _score(candidate: Candidate) -> float:
    return (candidate.neighbourhood_cost + 1) / ((candidate.size + 1) * (candidate.idle + 1))
