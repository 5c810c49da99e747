"""Measuring planners: what every strategy makes of a network at a share of the memory that keep-all needs."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from hedgerow_operator.planning.solver import planners
from hedgerow_operator.planning.worker import Until
from hedgerow_plans.methods.catalogue import Full
from hedgerow_plans.models import zoo
from hedgerow_plans.plan import Infeasible, Plan
from hedgerow_plans.planning.bounds import working_set_bytes
from hedgerow_plans.planning.problem import DeviceCosts, Problem, pose
from hedgerow_plans.planning.residents import place_residents
from hedgerow_plans.planning.strategies import STRATEGIES, Limits, Strategy, keep_all
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Sgd
from hedgerow_plans.verify import verify

_FOR_SEARCHING = 0.85
"""What of its time a strategy may search for; then it lays out what it has, and the plan is verified."""


@dataclass(frozen=True, slots=True)
class Case:
    """A network at a share of its keep-all peak, and who plans it."""

    model: str
    budget_percent: int
    batch_size: int
    costs: DeviceCosts
    strategies: tuple[str, ...]
    limit_seconds: float  # for each strategy


@dataclass(frozen=True, slots=True)
class Row:
    """What a strategy made of a case; nothing is shown that does not verify."""

    model: str
    nodes: int
    budget_percent: int
    budget_bytes: int
    floor_bytes: int
    strategy: str
    seconds: float
    peak_bytes: int | None  # None: it found no plan
    overhead: float | None  # energy over every node once, in parts of it
    gap: float | None  # energy over the most that any strategy proved, in parts of it


def measure(case: Case) -> list[Row]:
    """Plan a case with every strategy; the bound of one is a bound for all."""
    problem = _posed(case)
    everything, floor = keep_all.plan(problem, Limits(0)), working_set_bytes(problem)
    most = everything.needed_bytes if isinstance(everything, Infeasible) else floor
    budget = max(floor, most * case.budget_percent // 100)
    results = [(name, *_timed(_strategy(name), problem, budget, case.limit_seconds)) for name in case.strategies]
    proven = max((result.proven_picojoules for _, result, _ in results if isinstance(result, Plan)), default=0)
    return list(_rows(case, problem, (budget, floor), results, proven))


def _rows(
    case: Case,
    problem: Problem,
    sizes: tuple[int, int],
    results: list[tuple[str, Plan | Infeasible, float]],
    proven: int,
) -> Iterator[Row]:
    for name, result, seconds in results:
        row = Row(case.model, len(problem.graph.nodes), case.budget_percent, *sizes, name, seconds, None, None, None)
        yield _filled(row, result, proven) if isinstance(result, Plan) else row


def _filled(row: Row, plan: Plan, proven: int) -> Row:
    energy, plain = plan.promise.step_picojoules, plan.bounds.no_overhead_picojoules
    least = min(proven, energy)  # an order of its own may cost less than what is proven for the graph's
    return Row(
        *(row.model, row.nodes, row.budget_percent, row.budget_bytes, row.floor_bytes, row.strategy, row.seconds),
        plan.promise.peak_bytes,
        (energy - plain) / plain if plain else None,
        (energy - least) / least if least else None,
    )


def _posed(case: Case) -> Problem:
    graph = Full().apply(zoo.build(case.model)).graph
    direct = differentiate(graph, Sgd(), case.batch_size, zoo.entry(case.model).loss).direct
    return pose(direct, place_residents([direct], ()), case.costs, micro_batch=case.batch_size)


def _strategy(name: str) -> Strategy:
    return STRATEGIES[name] if name in STRATEGIES else planners(name).searching[0]


def _timed(
    strategy: Strategy, problem: Problem, budget_bytes: int, limit_seconds: float
) -> tuple[Plan | Infeasible, float]:
    """Return what a strategy made, checked, and the seconds until it could be used."""
    began = time.monotonic()
    keep_going = Until(began + limit_seconds * _FOR_SEARCHING)
    result = strategy(problem, Limits(budget_bytes, keep_going=keep_going))
    if isinstance(result, Plan):
        places = problem.residents
        wrong = verify(
            result,
            problem.graph,
            resident=places.placements,
            resident_bytes=places.bytes,
            mapped=tuple(places.mapped),
            budget_bytes=budget_bytes,
        )
        if wrong:
            raise RuntimeError(f"{result.strategy} made a plan that does not verify: {wrong[0]}")
    return result, time.monotonic() - began
