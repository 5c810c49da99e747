"""Every strategy's plan passes the independent check; recomputation trades operations for bytes."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_plans.graph.ir import Section
from hedgerow_plans.methods.selection import Full
from hedgerow_plans.models.perceptron import mlp
from hedgerow_plans.models.zoo import build
from hedgerow_plans.plan import Compute, Free, Infeasible, Plan, Recompute, Update
from hedgerow_plans.planning.lowering import lower
from hedgerow_plans.planning.problem import Problem, pose
from hedgerow_plans.planning.residents import place_residents
from hedgerow_plans.planning.sequence import Fetch, Run, Sequence, straight
from hedgerow_plans.planning.strategies import STRATEGIES, Limits, keep_all, sqrt_n
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Sgd
from support.networks import COSTS, MEASURES, PLENTY, UNHURRIED, Case, cases, violations


def planned(result: Plan | Infeasible) -> Plan:
    assert isinstance(result, Plan), result
    return result


def smallest(strategy: str, problem: Problem) -> Plan:
    needed = STRATEGIES[strategy](problem, Limits(0))
    assert isinstance(needed, Infeasible)
    plan = planned(STRATEGIES[strategy](problem, Limits(needed.needed_bytes)))
    assert plan.promise.peak_bytes == needed.needed_bytes  # what a strategy says it needs is enough
    return plan


def deep_chain(layers: int, micro_batch: int = 64) -> Problem:
    graph = Full().apply(mlp(4, (16,), hidden=(16,) * layers)).graph
    graphs = differentiate(graph, Sgd(), micro_batch)
    return pose(graphs.direct, place_residents(graphs.all()), COSTS, micro_batch=micro_batch)


@UNHURRIED
@given(cases())
def test_every_plan_of_every_strategy_verifies_and_needs_what_its_strategy_said(case: Case) -> None:
    for problem in case.problems():
        for strategy in STRATEGIES:
            for plan in (planned(STRATEGIES[strategy](problem, Limits(PLENTY))), smallest(strategy, problem)):
                assert violations(problem, plan, plan.promise.peak_bytes) == ()
                assert plan.bounds.max_live_bytes <= plan.promise.peak_bytes
                assert plan.bounds.working_set_bytes <= plan.bounds.max_live_bytes
                assert plan.bounds.no_overhead_picojoules <= plan.promise.step_picojoules


@UNHURRIED
@given(cases(), st.data())
def test_any_extra_runs_and_page_ins_lower_to_a_plan_that_verifies(case: Case, data: st.DataObject) -> None:
    batch = case.batch_size * 2
    problem = case.problem(case.graphs.accumulating, case.batch_size, 2)
    body = list(straight(problem).body)
    for _ in range(data.draw(st.integers(0, 8))):
        position = data.draw(st.integers(1, len(body)))
        seen = [op.node for op in body[:position] if isinstance(op, Run) and not problem.updates[op.node]]
        node = data.draw(st.sampled_from(seen))
        page = data.draw(st.booleans())
        body.insert(position, Fetch(problem.makes[node][0]) if page else Run(node))
    plain = straight(problem)
    plan = lower(problem, Sequence(plain.begin, tuple(body), plain.finish), "random")
    assert violations(problem, plan) == ()
    assert plan.micro_batch * plan.micro_batches == batch


@pytest.mark.parametrize("layers", [9, 16, 25, 36])
def test_recomputation_needs_less_than_keep_all_on_chains(layers: int) -> None:
    problem = deep_chain(layers)
    most, least = planned(keep_all.plan(problem, Limits(PLENTY))), smallest("sqrt-n", problem)
    assert least.promise.peak_bytes < most.promise.peak_bytes
    assert most.promise.step_flops < least.promise.step_flops < 1.5 * most.promise.step_flops


def test_activations_grow_with_the_root_of_the_depth() -> None:
    def activation_bytes(layers: int) -> int:
        problem = deep_chain(layers)
        return smallest("sqrt-n", problem).promise.peak_bytes - problem.residents.bytes

    shallow, deep = activation_bytes(16), activation_bytes(64)
    assert deep < 2.5 * shallow  # four times the depth; keep-all needs nearly four times the bytes


def test_the_cheapest_segmentation_that_fits_is_taken() -> None:
    problem = deep_chain(25)
    budgets = [smallest("sqrt-n", problem).promise.peak_bytes * percent // 100 for percent in (100, 110, 130, 160, 200)]
    energy = [planned(sqrt_n.plan(problem, Limits(budget))).promise.step_picojoules for budget in budgets]
    assert energy == list(accumulate(energy, min))  # never dearer with more bytes
    assert energy[-1] < energy[0]


def test_residual_connections_survive_segmentation() -> None:
    graphs = differentiate(Full().apply(build("cnn-small")).graph, Sgd(0.9), 4)
    problem = pose(graphs.direct, place_residents(graphs.all()), COSTS, micro_batch=4, measures=MEASURES)
    forward = sqrt_n.forward_nodes(problem)
    body = {node.name for node in problem.graph.nodes if node.section is Section.BODY}
    assert {"block.sum", "losses"} <= {problem.graph.nodes[node].name for node in forward} < body
    plans = [lower(problem, sqrt_n.segmented(problem, forward, count), "") for count in range(2, len(forward) + 1)]
    assert all(violations(problem, plan) == () for plan in plans)
    again = {problem.graph.nodes[step.node].name for plan in plans for step in plan.body if isinstance(step, Recompute)}
    assert {"block.conv1", "block.relu1", "conv1"} <= again


@UNHURRIED
@given(cases())
def test_updates_never_run_twice_and_forward_runs_again_only_before_them(case: Case) -> None:
    problem = case.problem(case.graphs.direct, case.batch_size, 1)
    plan = smallest("sqrt-n", problem)
    changed: set[str] = set()
    for step in plan.body:
        if isinstance(step, Update):
            assert not changed & set(problem.graph.nodes[step.node].updates)
            changed |= set(problem.graph.nodes[step.node].updates)
        elif isinstance(step, Recompute):
            assert not changed & set(problem.graph.nodes[step.node].reads)


@UNHURRIED
@given(cases())
def test_every_tensor_is_freed_right_after_its_last_use(case: Case) -> None:
    problem = case.problem(case.graphs.direct, case.batch_size, 1)
    previous: set[str] = set()
    for step in planned(keep_all.plan(problem, Limits(PLENTY))).body:
        if isinstance(step, Free):
            assert problem.graph.tensors[step.tensor].name in previous
        else:
            assert isinstance(step, Compute | Update)
            node = problem.graph.nodes[step.node]
            previous = {*node.reads, *node.outputs}


def test_a_budget_that_is_too_small_is_answered_with_numbers() -> None:
    problem = deep_chain(9)
    needed = planned(keep_all.plan(problem, Limits(PLENTY))).promise.peak_bytes
    result = keep_all.plan(problem, Limits(needed - 1))
    assert isinstance(result, Infeasible)
    assert (result.needed_bytes, result.available_bytes) == (needed, needed - 1)
    assert result.floor_bytes <= needed
    assert result.reason == (
        f"Graph direct needs {needed} bytes at micro-batch 64, but the budget is {needed - 1}; the largest at the "
        f"fullest step is {result.tensor} with 4096 bytes. Raise the budget, train fewer tensors, or choose a smaller "
        "model."
    )


def test_a_sequence_that_reads_what_was_never_made_is_refused() -> None:
    problem = deep_chain(2)
    plain = straight(problem)
    with pytest.raises(ValueError, match="before any node made it"):
        lower(problem, Sequence((), plain.body[1:], ()), "broken")
