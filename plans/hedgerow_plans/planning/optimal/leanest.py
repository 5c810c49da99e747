"""The smallest budget for which a plan is found: bisection between the working-set floor and the keep-all peak."""

import random

from hedgerow_plans.planning.abstract.workload import Workload
from hedgerow_plans.planning.optimal.demand import on_demand
from hedgerow_plans.planning.optimal.repair import KeepGoing, Taste, careful_repair, repair
from hedgerow_plans.planning.optimal.timeline import Codes, Timeline


def leanest(
    work: Workload, seed: int, keep_going: KeepGoing, deadline: int | None = None, parts: int | None = None
) -> Codes:
    """Return the plan with the smallest peak that was found; in the worst case the one that keeps everything.

    With `parts` the bisection ends at that part of the way from the floor to the keep-all peak.
    """
    best: Codes = list(range(work.nodes))
    low, high = work.floor_bytes, work.keep_all_bytes
    close_enough = (high - low) // parts if parts else 0
    while high - low > close_enough and keep_going():
        middle = (low + high) // 2
        line = _fitting(work, middle, seed, keep_going, deadline)
        if line is None:
            low = middle + 1
        else:
            best, high = list(line.codes), line.peak
    return best


def _fitting(work: Workload, budget: int, seed: int, keep_going: KeepGoing, deadline: int | None) -> Timeline | None:
    """Return any plan within a budget and deadline."""
    for attempt in range(4):
        line = Timeline(work, range(work.nodes))
        source = random.Random(seed)
        if attempt == 0:
            fits = repair(line, budget, keep_going)
        elif attempt == 1:
            codes = on_demand(work, budget, 1.0, keep_going)
            fits = codes is not None
            line = Timeline(work, codes or ())
        elif attempt == 2:
            fits = careful_repair(line, budget, keep_going)
        else:
            fits = repair(line, budget, keep_going, Taste(noise=source))
        if fits and line.peak <= budget and (deadline is None or line.time <= deadline):
            return line
    return None
