"""Every way of running a program trains to the same parameters in exactly the bytes it promised."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from hedgerow_agent.core.errors import GuardZoneChanged
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import DType, Order
from hedgerow_plans.methods.catalogue import Method
from hedgerow_plans.methods.lora import Lora
from hedgerow_plans.methods.selection import Full, Last
from hedgerow_plans.models import zoo
from hedgerow_plans.plan import Compute, Plan, Program, Recompute, Step, Update
from hedgerow_plans.program import DeviceCosts, ProgramRequest, build_program
from hedgerow_plans.training.optimizers import Adam8bit, Optimizer, Sgd
from hedgerow_plans.tuning import LEAST_BUDGET_BYTES
from support.programs import MOMENTUM, make_program, same_micro_batch, with_keep_all
from support.sampling import repetitions

STEPS = 4
RATE = 0.05
METHODS: list[Method] = [Full(), Last(), Lora(2, 4.0)]


def batches(batch_size: int) -> Iterator[tuple[Array, Array]]:
    rng = np.random.default_rng(3)
    while True:
        x = rng.standard_normal((batch_size, *zoo.entry("cnn-small").input_shape)).astype(np.float32)
        yield x, rng.integers(0, zoo.entry("cnn-small").classes, batch_size).astype(np.int32)


@cache
def planned(model: str, method: Method, frozen_outside: bool = False) -> Program:
    request = ProgramRequest(
        model=model,
        method=method,
        optimizer=Sgd(0.9, 1e-4),
        batch_size=12,
        device_class="test",
        costs=DeviceCosts(10**9, 1),
        budget_bytes=1 << 20,
        frozen_outside=frozen_outside,
    )
    program = build_program(request)
    assert isinstance(program, Program)
    return program


def train(program: Program, rung: int, folder: Path) -> bytes:
    """Take some steps on one rung, the last of them measured, and return what survives them."""
    executor = Executor(program, {}, seed=1, rung=rung, paging_folder=folder)
    source = batches(program.batch_size)
    for _ in range(STEPS - 1):
        executor.step(*next(source), RATE)
    result = executor.measure(*next(source), RATE)
    assert result.measured_peak_bytes == program.rungs[rung].promise.peak_bytes
    state = executor.resident_state()
    executor.close()
    return state


def check_all_rungs(program: Program, folder: Path) -> None:
    """Compare every rung with keep-all at its micro-batch to the bit, with the whole batch up to the order of sums."""
    reference = train(with_keep_all(program, program.rungs[0]), 0, folder)
    assert reference != Executor(program, {}, seed=1).resident_state()
    for rung, plan in enumerate(program.rungs):
        state = train(program, rung, folder)
        assert state == train(with_keep_all(program, plan), 0, folder), plan.strategy
        found, wanted = np.frombuffer(state, np.float32), np.frombuffer(reference, np.float32)
        assert np.allclose(found, wanted, rtol=1e-4, atol=1e-5), plan.strategy


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize("model", ["cnn-small", "mlp"])
def test_every_rung_of_a_planned_ladder(model: str, method: Method, tmp_path: Path) -> None:
    check_all_rungs(planned(model, method), tmp_path)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_recomputing_paging_and_micro_batches_put_together_by_hand(method: Method, tmp_path: Path) -> None:
    program = make_program("cnn-small", method)
    assert {plan.strategy for plan in program.rungs} == {"keep-all", "segments-2", "segments-3", "segments-5", "paging"}
    check_all_rungs(program, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_frozen_parameters_outside_the_arena_give_the_same_training() -> None:
    inside, outside = planned("cnn-small", Lora(2)), planned("cnn-small", Lora(2), frozen_outside=True)
    assert outside.resident_bytes < inside.resident_bytes
    results = []
    for program in (inside, outside):
        executor, source = Executor(program, {}, seed=1), batches(12)
        for _ in range(STEPS):
            executor.step(*next(source), RATE)
        results.append(executor.delta())
    assert all(np.array_equal(results[0][name], results[1][name]) for name in inside.delta)


@dataclass(frozen=True, slots=True)
class Switched:
    """A ladder to switch on at every step, and how often in a run that is not thorough."""

    name: str
    switches: int
    budget_bytes: int = 0
    optimizer: Optimizer = MOMENTUM


@cache
def switched(case: Switched) -> Program:
    """Return the ladder; its rungs for a whole batch are those to switch between."""
    return make_program("cnn-small", Full(), 6, budget_bytes=case.budget_bytes, optimizer=case.optimizer)


SWITCHED = (
    Switched("momentum", 1000),
    Switched("adam8bit", 200, optimizer=Adam8bit()),
    Switched("tuned", 200, LEAST_BUDGET_BYTES),
)


def test_ladders_that_are_switched_on_differ_in_what_they_keep_and_how_it_lies() -> None:
    _, adam8bit, tuned = (switched(case).graph("direct") for case in SWITCHED)
    assert {DType.INT8, DType.UINT8} <= {tensor.dtype for tensor in adam8bit.resident()}
    assert {tensor.order for tensor in tuned.tensors} == {Order.SAMPLES, Order.CHANNELS}


@pytest.mark.parametrize("case", SWITCHED, ids=lambda case: case.name)
def test_switching_between_random_rungs_at_every_step_changes_no_bit(case: Switched, tmp_path: Path) -> None:
    program = switched(case)
    rungs, rng = same_micro_batch(program), np.random.default_rng(0)
    switching = Executor(program, {}, seed=1, paging_folder=tmp_path)
    staying = Executor(program, {}, seed=1)
    one, other = batches(program.batch_size), batches(program.batch_size)
    seen = set()
    for _ in range(repetitions(case.switches, 1000)):
        switching.switch(int(rng.choice(rungs)))
        seen.add(switching.rung)
        assert switching.step(*next(one), RATE).loss == staying.step(*next(other), RATE).loss
    assert seen == set(rungs)
    assert switching.resident_state() == staying.resident_state()


def raise_top(program: Program, plan: Plan, by_bytes: int) -> Plan:
    """Return a plan whose highest placements lie higher than planned; the promise stays."""
    graph = program.graph(plan.graph)
    tensors = graph.by_name()

    def raised(offset: int, length: int) -> int:
        return offset + by_bytes if offset + length == plan.promise.peak_bytes and length else offset

    def change(step: Step) -> Step:
        if not isinstance(step, Compute | Recompute | Update):
            return step
        node = graph.nodes[step.node]
        scratch = raised(step.scratch_offset, table.scratch_bytes(node, tensors, plan.micro_batch))
        if isinstance(step, Update):
            return replace(step, scratch_offset=scratch)
        sizes = [tensors[name].bytes(plan.micro_batch) for name in node.outputs]
        offsets = tuple(map(raised, step.offsets, sizes))
        return replace(step, offsets=offsets, scratch_offset=scratch)

    begin, body, finish = (tuple(map(change, steps)) for steps in plan.sections())
    changed = replace(plan, begin=begin, body=body, finish=finish)
    assert changed != plan
    return changed


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_plan_that_uses_64_bytes_more_than_promised_is_caught(method: Method) -> None:
    program = planned("cnn-small", method)
    for rung, plan in enumerate(program.rungs):
        rungs = list(program.rungs)
        rungs[rung] = raise_top(program, plan, 64)
        executor = Executor(replace(program, rungs=tuple(rungs)), {}, seed=1, rung=rung)
        with pytest.raises(GuardZoneChanged) as caught:
            executor.measure(*next(batches(12)), RATE)
        assert caught.value.measured_bytes == plan.promise.peak_bytes + 64
        assert caught.value.promised_bytes == plan.promise.peak_bytes


def test_a_promise_that_is_too_high_is_seen() -> None:
    program = planned("cnn-small", Full())
    first = program.rungs[0]
    generous = replace(first, promise=replace(first.promise, peak_bytes=first.promise.peak_bytes + 1))
    executor = Executor(replace(program, rungs=(generous, *program.rungs[1:])), {}, seed=1)
    measured = executor.measure(*next(batches(12)), RATE).measured_peak_bytes
    assert measured == first.promise.peak_bytes == generous.promise.peak_bytes - 1


def test_measuring_takes_exactly_one_step() -> None:
    program = planned("mlp", Full())
    measured, plain = Executor(program, {}, seed=1), Executor(program, {}, seed=1)
    x, y = next(batches(12))
    assert measured.measure(x, y, RATE).loss == plain.step(x, y, RATE).loss
    assert measured.resident_state() == plain.resident_state()
    assert measured.steps_taken == plain.steps_taken == 1
