"""Which plans a program carries: few, each worth having, from the most memory to the least.

Every strategy gives all it has between the budget and its own floor. Of all plans, those stay that no other beats in
both peak and energy.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.plan import Infeasible, Plan
from hedgerow_plans.planning.problem import DeviceCosts, Measures, Problem, pose
from hedgerow_plans.planning.residents import Residents
from hedgerow_plans.planning.strategies import SEQUENCES, Limits, keep_all
from hedgerow_plans.planning.strategies.limits import all_that_fit

MOST_RUNGS = 6
"""A device gains little from more, and every rung is bytes to send and to verify."""


@dataclass(frozen=True, slots=True)
class Task:
    """What all plans of a program have in common."""

    residents: Residents
    costs: DeviceCosts
    batch_size: int
    measures: Measures


def training_problems(task: Task, direct: Graph, accumulating: Graph) -> list[Problem]:
    """Return the whole batch at once, and every way to cut it into equal micro-batches, largest first."""
    batch = task.batch_size
    smaller = [size for size in range(batch // 2, 0, -1) if batch % size == 0]
    return [_pose(task, direct, batch), *(_pose(task, accumulating, size, batch // size) for size in smaller)]


def _pose(task: Task, graph: Graph, micro_batch: int, micro_batches: int = 1) -> Problem:
    return pose(
        graph,
        task.residents,
        task.costs,
        micro_batch=micro_batch,
        micro_batches=micro_batches,
        measures=task.measures,
    )


def build_ladder(
    problems: Sequence[Problem], limits: Limits, floor_bytes: int | None = None
) -> tuple[Plan, ...] | Infeasible:
    """Return the rungs between budget and floor, most memory first, or why there is none."""
    plans: list[Plan] = []
    refusals: list[Infeasible] = []
    for result in _candidates(problems, limits):
        if isinstance(result, Plan):
            plans.append(result)
        else:
            refusals.append(result)
        if plans and not limits.keep_going():
            break
    if plans:
        return _thinned(_down_to(pareto(plans), floor_bytes))
    nearest = min(refusals, key=lambda refusal: refusal.needed_bytes)
    return replace(nearest, floor_bytes=min(refusal.floor_bytes for refusal in refusals))


def _candidates(problems: Iterable[Problem], limits: Limits) -> Iterator[Plan | Infeasible]:
    for problem in problems:
        for name, sequences in SEQUENCES.items():
            yield from all_that_fit(problem, sequences(problem, limits.keep_going), name, limits)


def pareto(plans: Iterable[Plan]) -> list[Plan]:
    """Return the plans that no other beats in both peak and energy, most memory and least energy first."""
    best: list[Plan] = []
    for plan in sorted(plans, key=lambda plan: (plan.promise.step_picojoules, plan.promise.peak_bytes)):
        if not best or plan.promise.peak_bytes < best[-1].promise.peak_bytes:
            best.append(plan)
    return best


def _down_to(rungs: list[Plan], floor_bytes: int | None) -> list[Plan]:
    """Leave out what is smaller than the first rung that fits the floor."""
    for index, rung in enumerate(rungs):
        if floor_bytes is not None and rung.promise.peak_bytes <= floor_bytes:
            return rungs[: index + 1]
    return rungs


def _thinned(rungs: list[Plan]) -> tuple[Plan, ...]:
    """Leave out, one by one, the rung between the two others that are closest in proportion; both ends stay."""
    rungs = list(rungs)
    while len(rungs) > MOST_RUNGS:
        peaks = [rung.promise.peak_bytes for rung in rungs]
        rungs.pop(min(range(1, len(rungs) - 1), key=lambda at: Fraction(peaks[at - 1], peaks[at + 1])))
    return tuple(rungs)


def plan_evaluation(task: Task, graph: Graph, limits: Limits) -> Plan | Infeasible:
    """Return the forward plan with the largest micro-batch, up to the batch, that fits."""
    best = _evaluate(task, graph, 1, limits)
    fits, too_large = 1, task.batch_size + 1
    while isinstance(best, Plan) and too_large - fits > 1:
        middle = (fits + too_large) // 2
        attempt = _evaluate(task, graph, middle, limits)
        if isinstance(attempt, Plan):
            best, fits = attempt, middle
        else:
            too_large = middle
    return best


def _evaluate(task: Task, graph: Graph, micro_batch: int, limits: Limits) -> Plan | Infeasible:
    return keep_all.plan(_pose(task, graph, micro_batch), limits)
