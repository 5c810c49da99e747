"""`optimal` on training graphs: plans that verify, cheaper than the greedy ones, with a bound that holds."""

import random
from collections.abc import Sequence

from hypothesis import given, settings

from hedgerow_plans.methods.catalogue import Method
from hedgerow_plans.methods.selection import Full
from hedgerow_plans.models.perceptron import mlp
from hedgerow_plans.plan import Infeasible, Plan, Recompute, Update
from hedgerow_plans.planning.ladder import build_ladder, chosen_budgets
from hedgerow_plans.planning.problem import DeviceCosts, Problem, pose
from hedgerow_plans.planning.residents import place_residents
from hedgerow_plans.planning.sequence import Sequence as Operations
from hedgerow_plans.planning.strategies import STRATEGIES, Limits, keep_all, optimal, sqrt_n
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Sgd
from support.networks import COSTS, PLENTY, Case, cases, violations

FEW = settings(max_examples=3, deadline=None)


def deep_chain(layers: int, micro_batch: int = 64, costs: DeviceCosts = COSTS, method: Method | None = None) -> Problem:
    graph = (method or Full()).apply(mlp(4, (16,), hidden=(16,) * layers)).graph
    graphs = differentiate(graph, Sgd(), micro_batch)
    return pose(graphs.direct, place_residents(graphs.all()), costs, micro_batch=micro_batch)


def needed_bytes(problem: Problem) -> int:
    answer = keep_all.plan(problem, Limits(0))
    assert isinstance(answer, Infeasible)
    return answer.needed_bytes


@FEW
@given(cases())
def test_every_plan_verifies_and_no_other_strategy_is_cheaper(case: Case) -> None:
    for problem in case.problems():
        most = needed_bytes(problem)
        for budget in {most, most * 4 // 5, most * 3 // 5}:
            plan = optimal.plan(problem, Limits(budget))
            others = [strategy(problem, Limits(budget)) for strategy in STRATEGIES.values()]
            if isinstance(plan, Infeasible):
                assert plan.needed_bytes > budget
                assert not any(isinstance(other, Plan) for other in others)
                continue
            assert violations(problem, plan, budget) == ()
            assert plan.bounds.no_overhead_picojoules <= plan.bounds.least_picojoules <= plan.promise.step_picojoules
            for other in others:
                if isinstance(other, Plan):
                    assert plan.bounds.least_picojoules <= other.promise.step_picojoules
                    assert plan.promise.step_picojoules <= other.promise.step_picojoules * 1.0003


@FEW
@given(cases())
def test_nothing_is_recomputed_after_what_it_reads_was_updated(case: Case) -> None:
    problem = case.problem(case.graphs.direct, case.batch_size, 1)
    plan = optimal.plan(problem, Limits(needed_bytes(problem) * 3 // 4))
    changed: set[str] = set()
    for step in plan.body if isinstance(plan, Plan) else ():
        if isinstance(step, Update):
            assert not changed & set(problem.graph.nodes[step.node].updates)
            changed |= set(problem.graph.nodes[step.node].updates)
        elif isinstance(step, Recompute):
            assert not changed & set(problem.graph.nodes[step.node].reads)


def test_it_is_cheaper_than_segments_on_a_chain() -> None:
    problem = deep_chain(12, costs=DeviceCosts(10**9, 100))  # nowhere to page to
    budget = needed_bytes(problem) * 9 // 10
    greedy, ours = sqrt_n.plan(problem, Limits(budget)), optimal.plan(problem, Limits(budget))
    assert isinstance(greedy, Plan)
    assert isinstance(ours, Plan)
    assert ours.promise.step_picojoules < greedy.promise.step_picojoules
    assert ours.bounds.no_overhead_picojoules < ours.bounds.least_picojoules


def test_the_same_limits_give_the_same_plan() -> None:
    problem = deep_chain(10, costs=DeviceCosts(10**9, 100))
    budget = needed_bytes(problem) * 7 // 10
    assert optimal.plan(problem, Limits(budget, seed=3)) == optimal.plan(problem, Limits(budget, seed=3))


def test_interrupted_planning_returns_the_best_so_far() -> None:
    problem = deep_chain(10, costs=DeviceCosts(10**9, 100))
    calls = iter(range(10**9))
    plan = optimal.plan(problem, Limits(needed_bytes(problem) * 8 // 10, keep_going=lambda: next(calls) < 5000))
    assert isinstance(plan, Plan)
    assert violations_without_scratch(problem, plan) == ()


def violations_without_scratch(problem: Problem, plan: Plan) -> tuple[object, ...]:
    from hedgerow_plans.verify import verify  # noqa: PLC0415 - the support module brings its own scratch

    residents = problem.residents
    return verify(plan, problem.graph, resident=residents.placements, resident_bytes=residents.bytes)


def test_a_ladder_with_the_search_is_never_dearer_with_more_memory() -> None:
    problem = deep_chain(6, micro_batch=16, costs=DeviceCosts(10**9, 100))
    plain = build_ladder([problem], Limits(PLENTY))
    asked: list[int] = []

    def searching(problem: Problem, limits: Limits, known: Sequence[Operations] | None = None) -> Plan | Infeasible:
        asked.append(limits.budget_bytes)
        return optimal.plan(problem, limits, known)

    rungs = build_ladder([problem], Limits(PLENTY), searching=[searching])
    assert asked
    assert isinstance(rungs, tuple)
    assert isinstance(plain, tuple)
    energy = [rung.promise.step_picojoules for rung in rungs]
    assert energy == sorted(energy)
    assert rungs[-1].promise.peak_bytes <= plain[-1].promise.peak_bytes


def test_the_search_is_asked_only_where_there_is_something_to_gain_and_not_below_a_refusal() -> None:
    problem = deep_chain(6, micro_batch=16, costs=DeviceCosts(10**9, 100, 10**6, 10**6, 1, 1))
    budgets = chosen_budgets(problem, PLENTY)
    asked: list[int] = []

    def refusing(_problem: Problem, limits: Limits, _known: Sequence[Operations] | None = None) -> Plan | Infeasible:
        asked.append(limits.budget_bytes)
        return Infeasible(PLENTY, limits.budget_bytes, 1, "", "")

    rungs = build_ladder([problem], Limits(PLENTY), searching=[refusing])
    assert isinstance(rungs, tuple)
    assert asked == budgets[1:2]  # keep-all is as good as any at the first
    only_searched = build_ladder([problem], Limits(PLENTY), searching=[refusing], quick={})
    assert isinstance(only_searched, Infeasible)
    assert asked == [*budgets[1:2], budgets[0]]


def test_what_is_proven_of_more_memory_is_proven_of_less() -> None:
    problem = deep_chain(6, micro_batch=16, costs=DeviceCosts(10**9, 100))
    rungs = build_ladder([problem], Limits(PLENTY), searching=[optimal.plan])
    assert isinstance(rungs, tuple)
    proven = [rung.proven_picojoules for rung in rungs]
    assert proven == sorted(proven)
    assert all(rung.gap is not None and rung.gap >= 0 for rung in rungs)
    assert proven[-1] > rungs[0].bounds.no_overhead_picojoules


def test_budgets_are_chosen_between_floor_and_keep_all() -> None:
    problem = deep_chain(random.Random(1).randint(5, 9))
    budgets = chosen_budgets(problem, PLENTY)
    assert budgets[0] == needed_bytes(problem)
    assert budgets == sorted(budgets, reverse=True)
    assert len(budgets) == 6
    assert chosen_budgets(problem, budgets[-1] - 1) == []
