"""Paging for real: plans of the certified search that page to storage train to the bits of keep-all."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hedgerow_agent.core.errors import PagingFailed
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.methods.catalogue import Full
from hedgerow_plans.plan import Infeasible, PageIn, PageOut, Plan, Program
from hedgerow_plans.planning.problem import DeviceCosts, Problem, pose
from hedgerow_plans.planning.residents import place_residents
from hedgerow_plans.planning.strategies import Limits, keep_all, optimal
from hedgerow_plans.verify import verify
from support.programs import make_program, with_keep_all

BOARD = DeviceCosts(120_340_000, 24_930, 24_500_000, 45_500_000, 6_122, 3_297)
"""A Raspberry Pi 4 as POET describes it: writing a byte costs less than computing a convolution's byte again."""

BATCH = 12
STEPS = 4


def problem_of(program: Program) -> Problem:
    return pose(program.graph("direct"), place_residents(program.graphs), BOARD, micro_batch=BATCH)


def paged_plans(program: Program) -> list[Plan]:
    """Return what the search finds for a row of budgets, as far as it pages."""
    problem = problem_of(program)
    everything = keep_all.plan(problem, Limits(0))
    assert isinstance(everything, Infeasible)
    most = everything.needed_bytes
    found = [optimal.plan(problem, Limits(most * percent // 100)) for percent in (90, 80, 70)]
    return [plan for plan in found if isinstance(plan, Plan) and any(isinstance(step, PageOut) for step in plan.body)]


def batches(count: int) -> list[tuple[Array, Array]]:
    rng = np.random.default_rng(3)
    return [
        (rng.standard_normal((BATCH, 1, 8, 8)).astype(np.float32), rng.integers(0, 10, BATCH, dtype=np.int32))
        for _ in range(count)
    ]


def train(program: Program, folder: Path | None) -> tuple[bytes, int | None]:
    executor = Executor(program, {}, seed=1, paging_folder=folder)
    *plain, last = batches(STEPS)
    for batch in plain:
        executor.step(*batch, 0.05)
    measured = executor.measure(*last, 0.05).measured_peak_bytes
    state = executor.resident_state()
    executor.close()
    return state, measured


def test_a_plan_that_pages_gives_the_bits_of_keep_all(tmp_path: Path) -> None:
    program = make_program("cnn-small", Full(), BATCH)
    plans = paged_plans(program)
    assert plans, "the search pages where storage is cheaper than computing again"
    wanted, _ = train(with_keep_all(program, program.rungs[0]), None)
    for plan in plans:
        graph, places = program.graph("direct"), program.resident
        assert not verify(plan, graph, resident=places, resident_bytes=program.resident_bytes)
        state, measured = train(replace(program, rungs=(plan,)), tmp_path)
        assert state == wanted
        assert measured == plan.promise.peak_bytes
        paged = sum(graph.tensors[step.tensor].bytes(BATCH) for step in plan.body if isinstance(step, PageOut))
        back = sum(isinstance(step, PageIn) for step in plan.body)
        print(f"FIGURE paging in {plan.promise.peak_bytes} bytes: {paged} bytes out, {back} tensors back in a step")
    assert list(tmp_path.iterdir()) == []


def test_a_plan_that_pages_needs_a_folder_and_says_so() -> None:
    program = make_program("cnn-small", Full(), BATCH)
    with pytest.raises(PagingFailed, match="no folder was given; name one"):
        Executor(replace(program, rungs=tuple(paged_plans(program)[:1])), {}, seed=1)
