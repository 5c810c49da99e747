"""From what the solver says to plans: choices carried out at their price, repeats where they overflow least."""

import random
from functools import cache

import pytest

from hedgerow_plans.planning.abstract.bare import bare_steps, bare_workload
from hedgerow_plans.planning.abstract.workload import Workload
from hedgerow_plans.planning.optimal.guided import follow
from hedgerow_plans.planning.optimal.incumbent import Incumbent, Options
from hedgerow_plans.planning.optimal.placing import settle
from hedgerow_plans.planning.optimal.point import overhead, violated
from hedgerow_plans.planning.optimal.relaxation import Relaxation
from hedgerow_plans.planning.optimal.repair import overflow
from hedgerow_plans.planning.optimal.solver import Problem, Solved
from hedgerow_plans.planning.optimal.stages import last_purposes, peaks, stage_ends
from hedgerow_plans.planning.optimal.starts import first_plans
from hedgerow_plans.planning.optimal.timeline import Timeline
from hedgerow_plans.verify_bare import verify_bare
from support.workloads import random_layered_graph

SEEDS = range(8)


@cache
def wide(seed: int) -> tuple[Workload, int]:
    source = random.Random(seed)
    work = bare_workload(random_layered_graph(source, source.randint(50, 80), width=source.randint(4, 9)))
    return work, work.keep_all_bytes * 85 // 100


@cache
def relaxed(seed: int) -> Relaxation:
    work, budget = wide(seed)
    return Relaxation(work, budget, None, stage_ends(work, peaks(work, budget, last_purposes(work), 0.1)))


@cache
def solved(seed: int) -> Solved:
    problem = Problem(relaxed(seed), lambda: True, {})
    problem.without_integrality()
    return problem.with_integrality(None, 1e-4, lambda _choices: None)


@pytest.mark.parametrize("seed", SEEDS)
def test_choices_of_the_solver_are_carried_out_for_what_it_says_they_cost(seed: int) -> None:
    relaxation, choices = relaxed(seed), solved(seed).choices
    work = relaxation.work
    assert choices is not None
    codes = follow(relaxation, choices)
    assert codes is not None
    line = Timeline(work, codes)
    assert line.cost - work.base_cost <= overhead(relaxation, [int(choice) for choice in choices])


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_that_did_not_join_hold_all_the_same(seed: int) -> None:
    relaxation, choices = relaxed(seed), solved(seed).choices
    assert choices is not None
    assert not violated(relaxation, [int(choice) for choice in choices])


@pytest.mark.parametrize("seed", SEEDS)
def test_repeats_move_for_nothing_and_overflow_less(seed: int) -> None:
    source = random.Random(seed)
    problem = random_layered_graph(source, 80, width=6)
    work = bare_workload(problem)
    line = Timeline(work, range(work.nodes))
    for node in source.sample(range(work.nodes // 2), 12):
        line.insert(source.randint(work.nodes // 2, work.nodes - 1), [node])
    line.prune()
    budget, cost = line.peak * 9 // 10, line.cost
    before = overflow(line, budget)
    settle(line, budget, lambda: True)
    assert line.cost == cost
    assert overflow(line, budget) <= before
    fresh = Timeline(work, line.codes)
    assert fresh.memory.tolist() == line.memory.tolist()
    verify_bare(problem, bare_steps(work, line.codes), budget_bytes=line.peak)


def test_moving_repeats_helps_where_there_is_something_to_move() -> None:
    helped = 0
    for seed in SEEDS:
        work, budget = wide(seed)
        line = Timeline(work, follow(relaxed(seed), solved(seed).choices or ()) or ())
        before = overflow(line, budget)
        settle(line, budget, lambda: True)
        helped += overflow(line, budget) < before
    assert helped >= 2


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_better_points_are_told_on_the_way_and_bounds_stay_below_plans(seed: int) -> None:
    work, budget = wide(seed)
    plans = Incumbent(work, budget, None, Options())
    first_plans(plans)
    assert plans.cost is not None
    told = list[int]()
    problem = Problem(relaxed(seed), lambda: True, {})
    assert problem.without_integrality().bound <= plans.cost
    last = problem.with_integrality(None, 1e-4, lambda choices: told.append(len(choices)))
    assert told
    assert set(told) == {len(last.choices or ())}
    assert last.bound <= plans.cost
