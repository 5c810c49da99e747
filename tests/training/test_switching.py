"""Going from rung to rung is cheaper than a step, however small the network."""

import gc
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from hedgerow_agent.core.compilation import Compiled
from hedgerow_agent.core.errors import PagingFailed
from hedgerow_agent.core.executor import Executor
from hedgerow_plans.methods.catalogue import Full
from support.programs import make_program
from support.zoo_ladders import Pair, batch_of, ladder, weights_of

TURNS = 60


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


@pytest.mark.parametrize("model", ["cnn-small", "resnet8", "ds-cnn", "mobilenetv2"])
def test_a_switch_costs_less_than_a_step(model: str, tmp_path: Path) -> None:
    program = ladder(Pair(model, Full()))
    executor = Executor(program, weights_of(model), 1, paging_folder=tmp_path)
    prepared = seconds(executor.prepare)
    batch, rng = batch_of(model), np.random.default_rng(0)
    switches, steps = [], []
    for _ in range(TURNS):
        rung = int(rng.integers(len(program.rungs)))
        switches.append(seconds(partial(executor.switch, rung)))
        steps.append(seconds(partial(executor.step, *batch, 0.001)))
    ratio = statistics.median(switches) / statistics.median(steps)
    others = len(program.rungs) - 1
    print(
        f"FIGURE switch of {model}: {ratio:.4f} of a step; binding a rung beforehand took "
        f"{prepared / max(1, others) / statistics.median(steps):.2f} of a step"
    )
    assert ratio < 1


def test_a_prepared_ladder_binds_nothing_more(tmp_path: Path) -> None:
    program = ladder(Pair("cnn-small", Full()))
    executor = Executor(program, {}, seed=1, paging_folder=tmp_path)
    executor.prepare()
    for rung in range(len(program.rungs)):
        assert executor._bindings.has(rung)
        before = executor._bindings.take(rung)
        executor.switch(rung)
        assert executor._training is before
        assert executor.plan is program.rungs[rung]


def test_what_is_kept_of_a_large_ladder_is_bounded(tmp_path: Path) -> None:
    """Fifteen rungs of many calls each: the oldest are bound again when they come back, and train the same."""
    program = make_program("cnn-small", Full())
    executor = Executor(program, {}, seed=1, paging_folder=tmp_path)
    executor.prepare()
    kept = [rung for rung in range(len(program.rungs)) if executor._bindings.has(rung)]
    assert 1 < len(kept) < len(program.rungs)
    assert executor.rung in kept
    for rung in range(len(program.rungs)):
        executor.switch(rung)
        assert executor._bindings.has(rung)


def bound_rungs(executor: Executor) -> int:
    """Return how many rungs of this program anybody in the process still holds bound."""
    plans = set(map(id, executor.program.rungs))
    return sum(isinstance(one, Compiled) and id(one.plan) in plans for one in gc.get_objects())


def test_a_rung_for_which_there_is_no_room_goes_before_the_next_is_bound() -> None:
    program = make_program("cnn-small", Full())
    executor = Executor(program, {}, seed=1)
    executor._bindings._most_calls = 0
    bind, held = executor._bindings._compile, []

    def watched(rung: int) -> Compiled:
        held.append(bound_rungs(executor))
        return bind(rung)

    executor._bindings._compile = watched
    for rung in (1, 2, 0):
        executor.switch(rung)
        assert bound_rungs(executor) == 1
    assert held == [0, 0, 0]


def test_a_rung_that_cannot_be_bound_leaves_the_one_in_use() -> None:
    program = make_program("cnn-small", Full())
    paging = [plan.strategy for plan in program.rungs].index("paging")
    rng = np.random.default_rng(0)
    batch = rng.standard_normal((12, 1, 8, 8)).astype(np.float32), rng.integers(0, 10, 12, dtype=np.int32)
    trying, staying = (Executor(program, {}, seed=1, rung=1) for _ in range(2))
    trying._bindings._most_calls = 0
    with pytest.raises(PagingFailed, match="no folder was given; name one"):
        trying.switch(paging)
    assert trying.rung == 1
    assert trying.plan is program.rungs[1]
    assert trying.step(*batch, 0.05).loss == staying.step(*batch, 0.05).loss
    assert trying.resident_state() == staying.resident_state()
