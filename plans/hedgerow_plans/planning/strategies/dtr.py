"""Dynamic tensor rematerialisation (Kirisame et al. 2021): online eviction, for a budget that no plan was made for.

Dropped first is what costs least to have back (itself and the missing tensors around it), is large, and has not been
used for long. The agent can use it: it needs nothing but this package.
"""

from hedgerow_plans.planning.strategies.evicting import Evicting
from hedgerow_plans.planning.strategies.eviction import Candidate

NAME = "dtr"


def _score(candidate: Candidate) -> float:
    return (candidate.neighbourhood_cost + 1) / ((candidate.size + 1) * (candidate.idle + 1))


_STRATEGY = Evicting(NAME, _score)
plan, sequences, schedule = _STRATEGY.plan, _STRATEGY.sequences, _STRATEGY.schedule
