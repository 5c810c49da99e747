"""Operations, time and energy of a step: the table's flops, counted as often as a section runs."""

from hypothesis import given, settings

from hedgerow_plans.accounting.cost import flops, step_cost
from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.ir import Section
from hedgerow_plans.methods.adapted import Adapted
from hedgerow_plans.methods.selection import Full
from hedgerow_plans.plan import Plan
from hedgerow_plans.planning.ladder import Task, training_problems
from hedgerow_plans.planning.problem import Measures
from hedgerow_plans.planning.residents import place_residents
from hedgerow_plans.planning.strategies import keep_all
from hedgerow_plans.planning.strategies.limits import Limits
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Sgd
from support.networks import COSTS, PLENTY
from support.random_graphs import adapted_graphs


def test_a_linear_layer_by_hand() -> None:
    build = Builder("net")
    graph = Full().apply(build.graph(build.linear("logits", build.input((5,)), 3))).graph
    step = differentiate(graph, Sgd(), 2).evaluate
    loss = flops(step, 2) - 2 * (2 * 15 + 3)
    assert loss > 0
    assert flops(step, 4) == 2 * flops(step, 2)


def test_the_body_counts_once_per_micro_batch_and_the_update_once() -> None:
    build = Builder("net")
    graph = Full().apply(build.graph(build.linear("logits", build.input((5,)), 3))).graph
    step = differentiate(graph, Sgd(), 8).accumulating
    update = 2 * (15 + 3)
    assert [node.op for node in step.nodes if node.section is Section.FINISH] == ["sgd", "sgd"]
    assert flops(step, 2, 4) - update == 4 * (flops(step, 2, 1) - update)


@settings(max_examples=30, deadline=None)
@given(adapted_graphs())
def test_the_cost_is_what_a_plan_without_overhead_promises(adapted: Adapted) -> None:
    graphs = differentiate(adapted.graph, Sgd(), 4)
    task = Task(place_residents(graphs.all()), COSTS, 4, Measures())
    for problem in training_problems(task, graphs.direct, graphs.accumulating):
        plan = keep_all.plan(problem, Limits(PLENTY))
        assert isinstance(plan, Plan)
        cost = step_cost(problem.graph, COSTS, problem.micro_batch, problem.micro_batches)
        promise = plan.promise
        assert (cost.flops, cost.nanoseconds, cost.picojoules) == (
            promise.step_flops,
            promise.step_nanoseconds,
            promise.step_picojoules,
        )
