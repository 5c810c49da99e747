"""Training with forward passes only: the slope is the gradient's, the ladder falls back to it, and the loss falls."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels import bind
from hedgerow_agent.core.kernels.call import Array, Call, Runtime
from hedgerow_operator.planning import worker
from hedgerow_operator.planning.worker import Planned
from hedgerow_plans import codec
from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import Node, Role, Section
from hedgerow_plans.methods.catalogue import Full, Last, Lora, Method
from hedgerow_plans.plan import Infeasible, Program, Update
from hedgerow_plans.program import DeviceCosts, ProgramRequest, build_program, difference
from hedgerow_plans.training.forward_only import DISTANCE, NAME
from hedgerow_plans.training.optimizers import Adam, Sgd
from hedgerow_plans.verify import Rule, verify_program
from support.gradients import check_gradients, parameter, seeds

PLENTY = 10**8
SEED = 5


def asking(method: Method, budget_bytes: int, batch_size: int = 8) -> ProgramRequest:
    return ProgramRequest(
        model="cnn-small",
        method=method,
        optimizer=Sgd(0.9),
        batch_size=batch_size,
        device_class="board",
        costs=DeviceCosts(10**9, 100),
        budget_bytes=budget_bytes,
        input_shape=(1, 14, 14),
    )


def below_backward(asked: ProgramRequest) -> Program:
    """Return the program for a budget just below the least for which a backward plan is found."""
    with_backward = [asked.budget_bytes]
    program = build_program(asked)
    while isinstance(program, Program) and program.rungs[0].strategy != NAME:
        with_backward.append(program.rungs[-1].promise.peak_bytes)
        program = build_program(replace(asked, budget_bytes=with_backward[-1] - 1))
    assert isinstance(program, Program), program
    return program


def parameters(program: Program) -> dict[str, Array]:
    source = np.random.default_rng(3)
    tensors = (tensor for graph in program.graphs for tensor in graph.resident())
    return {t.name: source.normal(0, 0.1, t.shape).astype(np.float32) for t in tensors if t.role is not Role.STATE}


def batch(count: int) -> tuple[Array, Array]:
    source = np.random.default_rng(4)
    return source.normal(size=(count, 1, 14, 14)).astype(np.float32), source.integers(0, 10, count).astype(np.int32)


@pytest.fixture(scope="module", params=[Full(), Lora(2, 2, ()), Last()], ids=lambda method: str(method.name))
def forward_only(request: pytest.FixtureRequest) -> Program:
    method: Method = request.param
    return below_backward(asking(method, PLENTY))


def test_where_no_backward_plan_fits_all_rungs_do_without(forward_only: Program) -> None:
    assert {rung.strategy for rung in forward_only.rungs} == {rung.graph for rung in forward_only.rungs} == {NAME}
    assert not verify_program(forward_only)
    assert "forward passes only (mezo)" in forward_only.remarks[0]
    residents = {tensor.role for graph in forward_only.graphs for tensor in graph.resident()}
    assert Role.STATE not in residents
    assert codec.decode(codec.encode(forward_only)) == forward_only


def test_the_measured_peak_is_the_promise_on_every_rung(forward_only: Program) -> None:
    x, y = batch(forward_only.batch_size)
    values = parameters(forward_only)
    deltas = []
    for rung, plan in enumerate(forward_only.rungs):
        executor = Executor(forward_only, values, SEED, rung)
        assert executor.measure(x, y, 1e-3).measured_peak_bytes == plan.promise.peak_bytes
        deltas.append(executor.delta())
        executor.close()
    for other in deltas[1:]:
        for name, trained in deltas[0].items():
            np.testing.assert_allclose(other[name], trained, rtol=0, atol=1e-5)


def test_a_step_walks_along_the_direction_by_the_slope_of_the_gradient(forward_only: Program) -> None:
    """perturbed, accumulate_slope and descend together, against the gradient of a program with a backward pass."""
    asked = replace(asking(method_of(forward_only), PLENTY), optimizer=Sgd())
    with_backward = build_program(asked)
    assert isinstance(with_backward, Program)
    values, (x, y) = parameters(forward_only), batch(forward_only.batch_size)
    steps = {name: taken(program, values, x, y) for name, program in (("mezo", forward_only), ("sgd", with_backward))}
    directions = {name: np.sign(step) for name, step in steps["mezo"].items()}
    lengths = np.unique(np.abs(np.concatenate([step.reshape(-1) for step in steps["mezo"].values()])).round(6))
    assert len(lengths) <= 3  # every element moves by the slope, up or down, but for rounding
    moved = float(np.median([np.median(np.abs(step)) for step in steps["mezo"].values()]))
    difference = central_difference(with_backward, values, directions, (x, y))
    assert moved == pytest.approx(difference, rel=1e-2)
    slope = sum(float((directions[name] * steps["sgd"][name]).sum()) for name in directions)
    assert moved == pytest.approx(slope, rel=0.1)  # the loss is not quite straight over that distance


def central_difference(
    program: Program, values: dict[str, Array], directions: dict[str, Array], samples: tuple[Array, Array]
) -> float:
    """Return the slope of the loss along a direction, from two evaluations."""
    executor = Executor(program, values, SEED)
    here = executor.delta()
    losses = []
    for sign in (1, -1):
        executor.load_delta(
            {name: (here[name] + sign * DISTANCE * directions[name]).astype(np.float32) for name in here}
        )
        losses.append(executor.evaluate(*samples).loss)
    executor.close()
    return (losses[0] - losses[1]) / (2 * DISTANCE)


def method_of(program: Program) -> Method:
    methods: dict[str, Method] = {"full": Full(), "lora": Lora(2, 2, ()), "last": Last()}
    return methods[program.method]


def taken(program: Program, values: dict[str, Array], x: Array, y: Array) -> dict[str, Array]:
    """Return what one step with a learning rate of 1 takes off each trained tensor, in 64 bits."""
    executor = Executor(program, values, SEED)
    before = executor.delta()
    executor.step(x, y, 1.0)
    after = executor.delta()
    executor.close()
    return {name: before[name].astype(np.float64) - after[name] for name in before}


@given(st.integers(1, 40), st.sampled_from([1e-3, -0.5]), seeds)
def test_perturbed(elements: int, distance: float, seed: int) -> None:
    node = Node("n", "perturbed", ("p",), ("y",), attributes={"key": seed % 7, "distance": distance})
    check_gradients(node, (parameter("p", elements),), 1, seed)


def test_a_direction_goes_up_as_often_as_down_and_differs_by_step_tensor_and_seed() -> None:
    count = 70_000  # several tiles
    seen = []
    for seed, step, key in ((1, 0, 0), (1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1)):
        node = Node("n", "perturbed", ("p",), ("y",), attributes={"key": key, "distance": 1.0})
        tensors = {name: parameter(name, count) for name in ("p", "y")}
        scratch = np.zeros(table.scratch_bytes(node, tensors, 1), np.uint8)
        values, moved = np.zeros(count, np.float32), np.empty(count, np.float32)
        bind(Call(node, (values,), (moved,), (), scratch, Runtime(seed=seed, step=step)))()
        seen.append(moved)
    assert set(np.unique(seen[0])) == {-1.0, 1.0}
    assert abs(seen[0].mean()) < 0.02
    assert np.array_equal(seen[0], seen[1])
    for other in seen[2:]:
        assert abs(float((seen[0] * other).mean())) < 0.02


def test_the_loss_falls() -> None:
    program = below_backward(asking(Last(), PLENTY))
    x, y = batch(program.batch_size)
    executor = Executor(program, parameters(program), SEED)
    before = executor.evaluate(x, y).loss
    for _ in range(300):
        executor.step(x, y, 2e-3)
    after = executor.evaluate(x, y).loss
    executor.close()
    assert after < 0.8 * before


def test_the_same_seed_trains_to_the_same_bits_and_another_to_others() -> None:
    program = below_backward(asking(Last(), PLENTY))
    x, y = batch(program.batch_size)
    ends = []
    for seed in (1, 1, 2):
        executor = Executor(program, parameters(program), seed)
        for _ in range(3):
            executor.step(x, y, 1e-2)
        ends.append(np.concatenate([values.reshape(-1) for values in executor.delta().values()]))
        executor.close()
    assert np.array_equal(ends[0], ends[1])
    assert not np.array_equal(ends[0], ends[2])


def test_verify_refuses_a_program_that_walks_twice_or_not_at_all() -> None:
    program = below_backward(asking(Last(), PLENTY))
    rung = program.rungs[0]
    finish = tuple(step for step in rung.finish if isinstance(step, Update))
    lazy = replace(rung, finish=tuple(step for step in rung.finish if step != finish[0]))
    twice = replace(rung, finish=(finish[0], *rung.finish))
    for broken in (lazy, twice):
        found = verify_program(replace(program, rungs=(broken, *program.rungs[1:])))
        assert Rule.COMPLETENESS in {violation.rule for violation in found}


def test_no_rung_of_a_program_with_a_backward_pass_is_forward_only() -> None:
    program = build_program(asking(Full(), PLENTY))
    assert isinstance(program, Program)
    assert all(rung.strategy != NAME for rung in program.rungs)


def test_a_kept_program_is_recognised_as_what_was_asked_for() -> None:
    asked = asking(Last(), PLENTY)
    program = below_backward(asked)
    assert difference(program, asked) == ""
    assert "graphs" in difference(program, replace(asked, optimizer=Adam(weight_decay=0.5)))
    planned = worker.plan(replace(asked, budget_bytes=program.rungs[0].promise.peak_bytes), 60)
    assert isinstance(planned, Planned)
    assert {rung.strategy for rung in planned.summary.rungs} == {NAME}


def test_a_budget_below_forward_passes_is_refused_with_their_need() -> None:
    asked = asking(Last(), PLENTY)
    program = below_backward(asked)
    least = program.rungs[-1].promise.peak_bytes
    refused = build_program(replace(asked, budget_bytes=least // 2))
    assert isinstance(refused, Infeasible)
    assert refused.needed_bytes == least
    assert isinstance(build_program(replace(asked, budget_bytes=refused.needed_bytes)), Program)


def test_parameters_change_in_the_last_section_only(forward_only: Program) -> None:
    graph = forward_only.graph(NAME)
    resident = {tensor.name for tensor in graph.resident()}
    changing = [node for node in graph.nodes if resident.intersection(node.updates)]
    assert {node.section for node in changing} == {Section.FINISH}
    assert sorted(name for node in changing for name in node.updates) == sorted(forward_only.delta)
