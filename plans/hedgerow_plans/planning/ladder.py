"""Which plans a program carries: few, each worth having, from the most memory to the least.

Every strategy gives all it has between the budget and its own floor. Of all plans, those stay that no other beats in
both peak and energy.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.plan import Infeasible, Plan, Promise
from hedgerow_plans.planning.bounds import every_node_once, max_live_bytes, refusal, working_set_bytes
from hedgerow_plans.planning.lowering import lower, sequence_picojoules
from hedgerow_plans.planning.problem import DeviceCosts, Measures, Problem, pose
from hedgerow_plans.planning.residents import Residents
from hedgerow_plans.planning.sequence import Sequence as OperationSequence
from hedgerow_plans.planning.sequence import straight, trace
from hedgerow_plans.planning.strategies import SEQUENCES, Limits, Offering, keep_all

MOST_RUNGS = 6
"""A device gains little from more, and every rung is bytes to send and to verify."""

WORTH_ONE_PART_IN = 1000
"""Where a quick plan is within this part of the least that is possible, the search is not asked."""


class Searching(Protocol):
    """A strategy that takes long for each plan, and starts from what others have."""

    def __call__(
        self, problem: Problem, limits: Limits, known: Sequence[OperationSequence] | None = None, /
    ) -> Plan | Infeasible:
        """Plan within limits; without known sequences it finds its own start."""


@dataclass(frozen=True, slots=True)
class Task:
    """What all plans of a program have in common."""

    residents: Residents
    costs: DeviceCosts
    batch_size: int
    measures: Measures


def training_problems(task: Task, direct: Graph, accumulating: Graph | None) -> list[Problem]:
    """Return the whole batch at once, and every way to cut it into equal micro-batches, largest first.

    Without an accumulating graph the batch stays whole, as it must when norms learn from its statistics.
    """
    batch = task.batch_size
    if accumulating is None:
        return [_pose(task, direct, batch)]
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


@dataclass(frozen=True, slots=True)
class Hope:
    """A strategy that may find, for one problem, what is better than the plans there are."""

    strategy: Searching
    problem: Problem
    limits: Limits
    budgets: tuple[int, ...]  # worth asking for, most memory first
    known: tuple[OperationSequence, ...]  # what quick strategies have for the problem


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came back with, by budget."""

    plans: tuple[Plan, ...]
    refusals: tuple[Infeasible, ...]


class Each(Protocol):
    """Calls a function with each of some values, in this process or in others, and keeps their order."""

    def __call__(self, call: Callable[[Hope], Found], values: Iterable[Hope], /) -> Iterable[Found]:
        """Return what came back."""


def build_ladder(
    problems: Sequence[Problem],
    limits: Limits,
    floor_bytes: int | None = None,
    searching: Sequence[Searching] = (),
    *,
    quick: Mapping[str, Offering] = SEQUENCES,
    each: Each = map,
) -> tuple[Plan, ...] | Infeasible:
    """Return the rungs between budget and floor, most memory first, or why there is none.

    `quick` are strategies that give all they have, whatever the budget. `searching` are those that take long for each
    plan: they are asked for a few budgets only, and only where the quick ones left something to gain. `each` calls a
    function with each of some values, as `map` does, for callers that have several processes.
    """
    everything = list(_offers(problems, limits, quick))
    plans = list(_placed(everything, limits))
    refusals: list[Infeasible] = []
    for found in each(search_downwards, _hopes(problems, limits, searching, plans, everything)):
        plans = [*found.plans, *plans]  # of two alike, the one that was searched for is taken
        refusals += found.refusals
    if plans:
        return _thinned(_down_to(pareto(_sharing_bounds(plans)), floor_bytes))
    if everything:
        refusals.append(_refusal(min(everything, key=lambda offer: offer.live_bytes), limits))
    if not refusals:  # nothing quick was asked, and below the working sets nothing is searched for
        answers = (keep_all.plan(problem, limits) for problem in problems)
        refusals += [answer for answer in answers if isinstance(answer, Infeasible)]
    refused = min(refusals, key=lambda refusal: refusal.needed_bytes)
    return replace(refused, available_bytes=limits.budget_bytes, floor_bytes=min(map(working_set_bytes, problems)))


@dataclass(frozen=True, slots=True)
class _Offer:
    """A sequence before it has offsets: what it costs, and the least that it needs."""

    problem: Problem
    strategy: str
    sequence: OperationSequence
    picojoules: int
    live_bytes: int


def _offers(problems: Iterable[Problem], limits: Limits, quick: Mapping[str, Offering]) -> Iterator[_Offer]:
    """Yield everything the strategies have, until time is up; the first one always."""
    for problem in problems:
        for name, sequences in quick.items():
            for sequence in sequences(problem, limits.keep_going):
                live_bytes = max_live_bytes(problem, sequence, trace(problem, sequence))
                yield _Offer(problem, name, sequence, sequence_picojoules(problem, sequence), live_bytes)
                if not limits.keep_going():
                    return


def _hopes(
    problems: Sequence[Problem],
    limits: Limits,
    searching: Sequence[Searching],
    known: Sequence[Plan],
    offers: Sequence[_Offer],
) -> list[Hope]:
    """Return whom to ask for what.

    Below what quick plans need, only the problem that can go lowest is asked, and only if it can page: by recomputing
    alone the quick ones get about as low as any.
    """
    lowest = min(range(len(problems)), key=lambda at: working_set_bytes(problems[at]))
    pages = problems[lowest].costs.page_in_bytes_per_second is not None
    hopes = []
    for at, problem in enumerate(problems if searching else ()):
        to_the_floor = not known or (pages and at == lowest)
        if budgets := _worth_searching(problem, limits.budget_bytes, known, to_the_floor=to_the_floor):
            sequences = tuple(offer.sequence for offer in offers if offer.problem is problem)
            hopes += [Hope(strategy, problem, limits, tuple(budgets), sequences) for strategy in searching]
    return hopes


def search_downwards(hope: Hope) -> Found:
    """Ask for less and less memory, where there is something to gain, until nothing is found or time is up."""
    plans: list[Plan] = []
    for budget_bytes in hope.budgets:
        result = hope.strategy(hope.problem, replace(hope.limits, budget_bytes=budget_bytes), hope.known)
        if isinstance(result, Infeasible):
            return Found(tuple(plans), (result,))
        plans.append(result)
        if not hope.limits.keep_going():
            break
    return Found(tuple(plans), ())


def _worth_searching(problem: Problem, budget_bytes: int, known: Sequence[Plan], *, to_the_floor: bool) -> list[int]:
    """Return the chosen budgets for which the best known plan is not next to the cheapest there can be."""
    least = problem.picojoules(every_node_once(problem))
    good_enough = least + least // WORTH_ONE_PART_IN
    enough = [plan.promise.peak_bytes for plan in known if 0 < plan.promise.step_picojoules <= good_enough]
    top = min(enough, default=budget_bytes + 1)
    own = [plan.promise.peak_bytes for plan in known if _is_of(plan, problem)]
    bottom = 0 if to_the_floor else min(own, default=top)
    return [budget for budget in chosen_budgets(problem, budget_bytes) if bottom <= budget < top]


def _is_of(plan: Plan, problem: Problem) -> bool:
    return (plan.graph, plan.micro_batch) == (problem.graph.name, problem.micro_batch)


def chosen_budgets(problem: Problem, budget_bytes: int) -> list[int]:
    """Return a few budgets from what keep-all needs, or the budget, down to the working-set floor."""
    plain, floor = straight(problem), working_set_bytes(problem)
    top = min(budget_bytes, max_live_bytes(problem, plain, trace(problem, plain)))
    if top < floor:
        return []
    beside = problem.residents.bytes
    steps = MOST_RUNGS - 1
    low, high = max(1, floor - beside), max(1, top - beside)
    row = [beside + round(high * (low / high) ** (step / steps)) for step in range(steps + 1)]
    return sorted({min(top, max(floor, budget)) for budget in row}, reverse=True)


def _placed(offers: Iterable[_Offer], limits: Limits) -> Iterator[Plan]:
    """Yield plans that fit the budget; what needs more bytes at once is not even laid out."""
    for offer in _worth_placing(offer for offer in offers if offer.live_bytes <= limits.budget_bytes):
        plan = lower(offer.problem, offer.sequence, offer.strategy, limits.keep_going)
        if plan.promise.peak_bytes <= limits.budget_bytes:
            yield plan


def _worth_placing(offers: Iterable[_Offer]) -> list[_Offer]:
    """Return the offers that no other beats in both energy and bytes; placing them is the dear part."""
    best: list[_Offer] = []
    for offer in sorted(offers, key=lambda offer: (offer.picojoules, offer.live_bytes)):
        if not best or offer.live_bytes < best[-1].live_bytes:
            best.append(offer)
    return best


def _refusal(offer: _Offer, limits: Limits) -> Infeasible:
    """Say what the leanest offer needs."""
    needed = lower(offer.problem, offer.sequence, offer.strategy, limits.keep_going).promise.peak_bytes
    instances = trace(offer.problem, offer.sequence)
    return refusal(offer.problem, offer.sequence, instances, needed, limits.budget_bytes)


def _sharing_bounds(plans: Sequence[Plan]) -> Iterator[Plan]:
    """Yield the plans, each with what is proven of more memory: with less, nothing of the same graph is cheaper."""
    for plan in plans:
        alike = (other for other in plans if (other.graph, other.micro_batch) == (plan.graph, plan.micro_batch))
        roomier = (other for other in alike if other.promise.peak_bytes >= plan.promise.peak_bytes)
        least = max(other.bounds.least_picojoules for other in roomier)
        if least <= plan.promise.step_picojoules:  # else its order is another than the one this was proven for
            plan = replace(plan, bounds=replace(plan.bounds, least_picojoules=least))  # noqa: PLW2901
        yield plan


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
    """Leave out, one by one, the rung that is missed least; both ends stay."""
    rungs = list(rungs)
    while len(rungs) > MOST_RUNGS:
        rungs.pop(
            min(range(1, len(rungs) - 1), key=lambda at: _missed(*(rung.promise for rung in rungs[at - 1 :][:3])))
        )
    return tuple(rungs)


def _missed(above: Promise, rung: Promise, below: Promise) -> Fraction:
    """Return how much a rung is missed: over how many budgets, in proportion, times the energy it saves on them."""
    budgets = Fraction(above.peak_bytes - rung.peak_bytes, rung.peak_bytes)
    return budgets * Fraction(below.step_picojoules - rung.step_picojoules, max(1, rung.step_picojoules))


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
