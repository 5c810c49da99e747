"""Melon (Wang et al. 2022): evict by tensor size times remaining life per recomputation time.

The time counts the whole chain of ancestors that are missing now, and is looked at afresh before every eviction. Frees
come right after the last use, and the layout has the lifetime-aware pool among its orders; micro-batches are the
ladder's: each of them is a problem of its own.
"""

from hedgerow_plans.planning.strategies.evicting import Evicting
from hedgerow_plans.planning.strategies.eviction import Candidate

NAME = "melon"


def _score(candidate: Candidate) -> float:
    return (candidate.chain_cost + 1) / ((candidate.size + 1) * (candidate.remaining_steps + 1))


_STRATEGY = Evicting(NAME, _score)
plan, sequences, schedule = _STRATEGY.plan, _STRATEGY.sequences, _STRATEGY.schedule
