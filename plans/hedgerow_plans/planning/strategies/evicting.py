"""What strategies that evict on demand have in common: everything but their name and their score."""

from dataclasses import dataclass

from hedgerow_plans.plan import Infeasible, Plan
from hedgerow_plans.planning.abstract.workload import Workload
from hedgerow_plans.planning.problem import Problem
from hedgerow_plans.planning.sequence import Sequence
from hedgerow_plans.planning.strategies.capacities import over_capacities
from hedgerow_plans.planning.strategies.eviction import Score, evict_on_demand
from hedgerow_plans.planning.strategies.limits import KeepGoing, Limits, first_that_fits, forever


@dataclass(frozen=True, slots=True)
class Evicting:
    """A strategy that drops what its score puts lowest."""

    name: str
    score: Score

    def plan(self, problem: Problem, limits: Limits) -> Plan | Infeasible:
        """Plan with the cheapest sequence that fits."""
        return first_that_fits(problem, self.sequences(problem, limits.keep_going), self.name, limits)

    def sequences(self, problem: Problem, keep_going: KeepGoing = forever) -> list[Sequence]:
        """Return what a row of capacities leads to, cheapest first."""
        return over_capacities(problem, self.schedule, keep_going)

    def schedule(self, work: Workload, capacity_bytes: int, keep_going: KeepGoing = forever) -> list[int] | None:
        """Return operation codes within a capacity, if this order of eviction finds any in time."""
        return evict_on_demand(work, capacity_bytes, self.score, keep_going)
