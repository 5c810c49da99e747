"""What a strategy has to stay within, and the choice every strategy ends with: the cheapest sequence that fits."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hedgerow_plans.plan import Infeasible, Plan
from hedgerow_plans.planning.bounds import max_live_bytes, refusal
from hedgerow_plans.planning.lowering import lower
from hedgerow_plans.planning.problem import Problem
from hedgerow_plans.planning.sequence import Sequence, trace

KeepGoing = Callable[[], bool]
"""Says when to return the best so far."""


def forever() -> bool:
    """Keep going without a limit: the reproducible mode."""
    return True


@dataclass(frozen=True, slots=True)
class Limits:
    """The budget, the seed of whatever is random, and a question that says when to return the best so far."""

    budget_bytes: int
    seed: int = 0
    keep_going: KeepGoing = forever


def first_that_fits(
    problem: Problem, sequences: Iterable[Sequence], strategy: str, limits: Limits
) -> Plan | Infeasible:
    """Return a plan for the first sequence, cheapest first, that fits the budget, or say how much the leanest needs."""
    lives = [(sequence, trace(problem, sequence)) for sequence in sequences]
    bounds = [max_live_bytes(problem, sequence, instances) for sequence, instances in lives]
    for (sequence, _), bound in zip(lives, bounds, strict=True):
        if bound <= limits.budget_bytes:
            plan = lower(problem, sequence, strategy, limits.keep_going)
            if plan.promise.peak_bytes <= limits.budget_bytes:
                return plan
    needed_bytes, leanest = _leanest(problem, [sequence for sequence, _ in lives], bounds, limits)
    return refusal(problem, *lives[leanest], needed_bytes, limits.budget_bytes)


def _leanest(problem: Problem, sequences: list[Sequence], bounds: list[int], limits: Limits) -> tuple[int, int]:
    """Return the smallest peak of all sequences and which one has it, looking only at those that may be smaller."""
    best: tuple[int, int] | None = None
    for bound, index in sorted((bound, index) for index, bound in enumerate(bounds)):
        if best is None or bound < best[0]:
            peak_bytes = lower(problem, sequences[index], "", limits.keep_going).promise.peak_bytes
            best = min(best or (peak_bytes, index), (peak_bytes, index))
    return best or (0, 0)
