"""SAGE (Gim and Ko 2022): checkpointing and gradient accumulation, and the cheapest mix of the two.

Checkpointing drops what is quick to compute for its size, looking at nothing but the tensor itself. Accumulation cuts
the batch; a mix is one micro-batch size with its own checkpointing.
"""

from collections.abc import Iterable

from hedgerow_plans.plan import Infeasible, Plan
from hedgerow_plans.planning.problem import Problem
from hedgerow_plans.planning.strategies.evicting import Evicting
from hedgerow_plans.planning.strategies.eviction import Candidate
from hedgerow_plans.planning.strategies.limits import Limits

NAME = "sage"


def _score(candidate: Candidate) -> float:
    return (candidate.cost + 1) / (candidate.size + 1)


_STRATEGY = Evicting(NAME, _score)
plan, sequences, schedule = _STRATEGY.plan, _STRATEGY.sequences, _STRATEGY.schedule


def plan_mix(problems: Iterable[Problem], limits: Limits) -> Plan | Infeasible:
    """Return the cheapest plan over all micro-batch sizes, or the refusal that is nearest to the budget."""
    results = [plan(problem, limits) for problem in problems]
    plans = [result for result in results if isinstance(result, Plan)]
    if plans:
        return min(plans, key=lambda fit: (fit.promise.step_picojoules, fit.promise.step_nanoseconds))
    refusals = [result for result in results if isinstance(result, Infeasible)]
    return min(refusals, key=lambda refusal: refusal.needed_bytes)
