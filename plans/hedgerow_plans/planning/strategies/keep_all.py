"""Keep-all: every node once in the graph's order, every tensor until its last reader. No overhead, the most memory."""

from hedgerow_plans.plan import Infeasible, Plan
from hedgerow_plans.planning.problem import Problem
from hedgerow_plans.planning.sequence import Sequence, straight
from hedgerow_plans.planning.strategies.limits import KeepGoing, Limits, first_that_fits, forever

NAME = "keep-all"


def plan(problem: Problem, limits: Limits) -> Plan | Infeasible:
    """Plan without recomputation."""
    return first_that_fits(problem, sequences(problem, limits.keep_going), NAME, limits)


def sequences(problem: Problem, _keep_going: KeepGoing = forever) -> list[Sequence]:
    """Return the one sequence there is."""
    return [straight(problem)]
