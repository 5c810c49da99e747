"""One module a strategy, one interface: a problem and limits in, a plan that fits or an Infeasible with numbers out.

A strategy decides what runs when (an operation sequence); lifetimes, offsets and steps are the lowering's business.
Given the same problem, budget and seed, and a `keep_going` that never says stop, it returns the same plan.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from hedgerow_plans.plan import Infeasible, Plan
from hedgerow_plans.planning.problem import Problem
from hedgerow_plans.planning.sequence import Sequence
from hedgerow_plans.planning.strategies import dtr, keep_all, melon, sage, sqrt_n, tte
from hedgerow_plans.planning.strategies.limits import KeepGoing, Limits

Strategy = Callable[[Problem, Limits], Plan | Infeasible]

STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        keep_all.NAME: keep_all.plan,
        tte.NAME: tte.plan,
        sqrt_n.NAME: sqrt_n.plan,
        melon.NAME: melon.plan,
        sage.NAME: sage.plan,
        dtr.NAME: dtr.plan,
    }
)
"""By the name a plan carries, cheapest first; all of them run without a solver."""

Offering = Callable[[Problem, KeepGoing], list[Sequence]]
"""Everything a strategy has to offer for a problem."""

SEQUENCES: Mapping[str, Offering] = MappingProxyType(
    {module.NAME: module.sequences for module in (keep_all, tte, sqrt_n, melon, sage, dtr)}
)
"""By the same names: everything a strategy has to offer, whatever the budget."""

__all__ = ["SEQUENCES", "STRATEGIES", "Limits", "Offering", "Strategy"]
