"""One row of sequences for all budgets: the same capacities are tried whatever the budget; the cheapest fit is taken.

So more memory never costs more energy, and what a refusal says is needed is found again when that much is given.
"""

from collections.abc import Callable, Iterator

from hedgerow_plans.planning.abstract.workload import Workload
from hedgerow_plans.planning.body import body_of
from hedgerow_plans.planning.lowering import sequence_flops
from hedgerow_plans.planning.problem import Problem
from hedgerow_plans.planning.sequence import Sequence, straight
from hedgerow_plans.planning.strategies.limits import KeepGoing

CAPACITIES = 10
"""Between the largest working set and what keep-all needs; each is one pass over the graph."""

Schedule = Callable[[Workload, int, KeepGoing], list[int] | None]
"""From a workload and a capacity to operation codes, while somebody waits for them."""


def over_capacities(problem: Problem, schedule: Schedule, keep_going: KeepGoing) -> list[Sequence]:
    """Return keep-all and the sequences that a schedule gives for a row of capacities, cheapest first."""
    distinct = dict.fromkeys(_sequences(problem, schedule, keep_going))
    return sorted(distinct, key=lambda sequence: sequence_flops(problem, sequence))


def _sequences(problem: Problem, schedule: Schedule, keep_going: KeepGoing) -> Iterator[Sequence]:
    yield straight(problem)
    body = body_of(problem)
    most, least = body.work.keep_all_bytes, body.work.floor_bytes
    for number in range(1, CAPACITIES + 1):
        if not keep_going():
            return
        codes = schedule(body.work, most - (most - least) * number // CAPACITIES, keep_going)
        if codes is not None:
            yield body.sequence(codes)
