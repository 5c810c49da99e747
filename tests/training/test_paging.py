"""Paging for real: plans of the certified search and of POET that page to storage train to the bits of keep-all."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from hedgerow_agent.core.errors import PagingFailed
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.ir import Graph, round_up
from hedgerow_plans.methods.catalogue import Full
from hedgerow_plans.plan import Infeasible, PageIn, PageOut, Plan, Program
from hedgerow_plans.planning.problem import DeviceCosts, Problem, pose
from hedgerow_plans.planning.residents import place_residents
from hedgerow_plans.planning.strategies import Limits, keep_all, optimal, poet
from hedgerow_plans.verify import verify
from support.programs import make_program, program_of, with_keep_all

BOARD = DeviceCosts(120_340_000, 24_930, 24_500_000, 45_500_000, 6_122, 3_297)
"""A Raspberry Pi 4 as POET describes it: writing a byte costs less than computing a convolution's byte again."""

BATCH = 12
STEPS = 4


def problem_of(program: Program) -> Problem:
    return pose(program.graph("direct"), place_residents(program.graphs), BOARD, micro_batch=program.batch_size)


def paged_plans(program: Program) -> list[Plan]:
    """Return what the search finds for a row of budgets, as far as it pages."""
    problem = problem_of(program)
    everything = keep_all.plan(problem, Limits(0))
    assert isinstance(everything, Infeasible)
    most = everything.needed_bytes
    found = [optimal.plan(problem, Limits(most * percent // 100)) for percent in (90, 80, 70)]
    return [plan for plan in found if isinstance(plan, Plan) and any(isinstance(step, PageOut) for step in plan.body)]


def waves() -> Graph:
    """Two convolutions, small enough for POET's model: no node of it has a second output, which POET cannot page."""
    build = Builder("waves")
    x = build.node("one", "tanh", (build.conv2d("first", build.input((1, 8, 8)), 8),))
    x = build.node("two", "tanh", (build.conv2d("second", x, 8),))
    return build.graph(build.linear("logits", build.global_avg_pool("pooled", x), 10))


def batches(count: int, size: int) -> list[tuple[Array, Array]]:
    rng = np.random.default_rng(3)
    return [
        (rng.standard_normal((size, 1, 8, 8)).astype(np.float32), rng.integers(0, 10, size, dtype=np.int32))
        for _ in range(count)
    ]


@dataclass(frozen=True, slots=True)
class Trained:
    """What some steps left behind: what survives them, the highest byte, and what lies in storage."""

    state: bytes
    measured_bytes: int | None
    stored: bytes


def train(program: Program, folder: Path | None) -> Trained:
    executor = Executor(program, {}, seed=1, paging_folder=folder)
    *plain, last = batches(STEPS, program.batch_size)
    for batch in plain:
        executor.step(*batch, 0.05)
    measured = executor.measure(*last, 0.05).measured_peak_bytes
    result = Trained(executor.resident_state(), measured, stored(executor))
    executor.close()
    return result


def stored(executor: Executor) -> bytes:
    """Return what is in the page file, which has no name to be opened by."""
    descriptor = executor._pages._descriptor
    return b"" if descriptor is None else os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def check_bits_peak_and_storage(program: Program, plan: Plan, wanted: Trained, folder: Path) -> None:
    graph, places = program.graph("direct"), program.resident
    assert not verify(plan, graph, resident=places, resident_bytes=program.resident_bytes)
    found = train(replace(program, rungs=(plan,)), folder)
    assert found.state == wanted.state
    assert found.measured_bytes == plan.promise.peak_bytes
    out = [step.tensor for step in plan.body if isinstance(step, PageOut)]
    sizes = [graph.tensors[tensor].bytes(program.batch_size) for tensor in dict.fromkeys(out)]
    assert len(found.stored) == sum(map(round_up, sizes[:-1])) + sizes[-1]
    assert np.any(np.frombuffer(found.stored, np.uint8))
    written = sum(graph.tensors[tensor].bytes(program.batch_size) for tensor in out)
    back = sum(isinstance(step, PageIn) for step in plan.body)
    print(
        f"FIGURE paging by {plan.strategy} in {plan.promise.peak_bytes} bytes: {written} bytes out, "
        f"{back} tensors back in a step"
    )
    assert list(folder.iterdir()) == []


def test_a_plan_that_pages_gives_the_bits_of_keep_all(tmp_path: Path) -> None:
    program = make_program("cnn-small", Full(), BATCH)
    plans = paged_plans(program)
    assert plans, "the search pages where storage is cheaper than computing again"
    wanted = train(with_keep_all(program, program.rungs[0]), None)
    assert wanted.stored == b""
    for plan in plans:
        check_bits_peak_and_storage(program, plan, wanted, tmp_path)


@pytest.mark.parametrize(("batch_size", "percent"), [(12, 95), (64, 75)])
def test_a_plan_of_poet_that_pages_gives_the_bits_of_keep_all(batch_size: int, percent: int, tmp_path: Path) -> None:
    program = program_of(waves(), Full(), batch_size)
    keep = with_keep_all(program, program.rungs[0])
    resident, most = program.resident_bytes, keep.rungs[0].promise.peak_bytes
    budget_bytes = resident + (most - resident) * percent // 100
    plan = poet.plan(problem_of(program), Limits(budget_bytes))
    assert isinstance(plan, Plan)
    assert plan.strategy == poet.NAME
    assert plan.promise.peak_bytes <= budget_bytes < most
    assert any(isinstance(step, PageOut) for step in plan.body)
    assert any(isinstance(step, PageIn) for step in plan.body)
    check_bits_peak_and_storage(program, plan, train(keep, None), tmp_path)


def test_a_plan_that_pages_needs_a_folder_and_says_so() -> None:
    program = make_program("cnn-small", Full(), BATCH)
    with pytest.raises(PagingFailed, match="no folder was given; name one"):
        Executor(replace(program, rungs=tuple(paged_plans(program)[:1])), {}, seed=1)
