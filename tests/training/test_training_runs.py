"""Real training on real digits, and going on after a restart."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from hedgerow_agent.core.data import Dataset, load_dataset
from hedgerow_agent.core.data.augmentation import noise
from hedgerow_agent.core.errors import BadInput, NonFiniteLoss
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.training import Schedule, TrainingRun
from hedgerow_plans.methods.lora import Lora
from hedgerow_plans.methods.selection import Full
from hedgerow_plans.plan import Program
from hedgerow_plans.program import DeviceCosts, ProgramRequest, build_program
from hedgerow_plans.training.optimizers import Sgd
from hedgerow_plans.training.schedules import Cosine
from support.digits import digits
from support.programs import make_program

ALLOWED_BYTES = 256 * 1024


@pytest.fixture(scope="module")
def program() -> Program:
    request = ProgramRequest(
        model="cnn-small",
        method=Full(),
        optimizer=Sgd(momentum=0.9, weight_decay=1e-3),
        batch_size=32,
        device_class="test",
        costs=DeviceCosts(10**9, 1),
        budget_bytes=1 << 20,
    )
    built = build_program(request)
    assert isinstance(built, Program)
    return built


def finish(run: TrainingRun) -> None:
    while not run.done:
        run.run_step()


@pytest.mark.parametrize("seed", [1, 2])
def test_digits_are_learnt_from_scratch(program: Program, seed: int) -> None:
    schedule = Schedule(30, 0.05, seed, Cosine(20), noise(0.15))
    run = TrainingRun(Executor(program, {}, seed), digits(), schedule)
    before = run.test()
    finish(run)
    after = run.test()
    assert run.step == run.total_steps == 30 * (1259 // 32)
    assert before.count == after.count == 269
    assert before.accuracy is not None
    assert after.accuracy is not None
    assert before.accuracy < 0.3
    print(f"FIGURE digits from scratch, seed {seed}: {after.accuracy:.4f} of {after.count} held-out samples")
    assert after.accuracy >= 0.97
    assert after.loss < 0.3 < before.loss
    assert (run.validate().accuracy or 0) >= 0.95


def test_going_on_in_the_middle_of_an_epoch_changes_no_bit(program: Program) -> None:
    schedule = Schedule(epochs=3, learning_rate=0.05, seed=3)
    whole = TrainingRun(Executor(program, {}, seed=3), digits(), schedule)
    first = TrainingRun(Executor(program, {}, seed=3), digits(), schedule)
    for _ in range(55):
        first.run_step()
    state, step = first.executor.resident_state(), first.step
    assert 0 < step % (whole.total_steps // 3) == 55 - whole.total_steps // 3
    second = TrainingRun(Executor(program, {}, seed=99), digits(), schedule, step)
    second.executor.load_resident_state(state)
    finish(whole)
    finish(second)
    assert second.executor.resident_state() == whole.executor.resident_state()
    assert second.executor.steps_taken == whole.executor.steps_taken


def test_a_delta_carries_what_was_learnt_to_another_device() -> None:
    program = make_program("cnn-small", Lora(2))
    source = Executor(program, {}, seed=1)
    x, y = digits().x[:12], digits().y[:12]
    for _ in range(5):
        source.step(x, y, 0.05)
    target = Executor(program, {}, seed=1)
    assert not np.array_equal(source.predict(x), target.predict(x))
    target.load_delta(source.delta())
    assert np.array_equal(source.predict(x), target.predict(x))
    assert set(source.delta()) == set(program.delta)


def test_partial_batches_are_evaluated_like_single_samples() -> None:
    data = digits()
    one, seven = (Executor(make_program("mlp", Full(), evaluation_batch=size), {}, seed=2) for size in (1, 7))
    assert np.allclose(one.predict(data.x[:40]), seven.predict(data.x[:40]), rtol=1e-5, atol=1e-5)
    rows = np.arange(100, 160)[::-1].copy()
    found, wanted = seven.evaluate(data.x, data.y, rows), one.evaluate(data.x[100:160], data.y[100:160])
    assert (found.count, found.accuracy) == (wanted.count, wanted.accuracy)
    assert np.isclose(found.loss, wanted.loss, rtol=1e-5)
    logits = one.predict(data.x[100:160])
    assert found.accuracy == (logits.argmax(axis=1) == data.y[100:160]).mean()


def test_evaluating_between_steps_changes_no_bit(program: Program) -> None:
    schedule = Schedule(epochs=1, learning_rate=0.05, seed=3)
    looked, plain = (TrainingRun(Executor(program, {}, seed=3), digits(), schedule) for _ in range(2))
    for _ in range(4):
        looked.validate()
        assert looked.run_step() == plain.run_step()
    assert looked.executor.resident_state() == plain.executor.resident_state()


@pytest.mark.parametrize("mapped", [False, True], ids=["in-memory", "mapped-file"])
def test_a_step_allocates_next_to_nothing(tmp_path: Path, mapped: bool) -> None:
    shape = (3, 48, 48)
    program = make_program("cnn-small", Full(), 24, input_shape=shape)
    rng = np.random.default_rng(0)
    data = Dataset(rng.standard_normal((80, *shape)).astype(np.float32), rng.integers(0, 10, 80, dtype=np.int32))
    assert data.x[:24].nbytes > 2 * ALLOWED_BYTES
    if mapped:
        np.savez(tmp_path / "images.npz", x=data.x, y=data.y)
        data = load_dataset(tmp_path / "images.npz")
    run = TrainingRun(Executor(program, {}, seed=1, paging_folder=tmp_path), data, Schedule(100, 0.01, 1))
    for rung in range(0, len(program.rungs), 3):
        run.executor.switch(rung)
        run.run_step()
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            run.run_step()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak - before < ALLOWED_BYTES


def test_an_epoch_begins_without_allocating_whatever_the_number_of_samples() -> None:
    program = make_program("mlp", Full(), 32, input_shape=(1, 2, 2))
    data = Dataset(np.zeros((200_000, 1, 2, 2), np.float32), np.zeros(200_000, np.int64))
    executor, schedule = Executor(program, {}, seed=1), Schedule(3, 0.01, 1)
    per_epoch = TrainingRun(executor, data, schedule).total_steps // 3
    run = TrainingRun(executor, data, schedule, per_epoch - 2)
    run.run_step()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(3):
            run.run_step()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert run.step == per_epoch + 2
    print(f"FIGURE bytes allocated where an epoch of {len(data.x)} samples begins: {peak - before}")
    assert peak - before < ALLOWED_BYTES


@pytest.mark.parametrize("kind", ["u1", "i2", "i8", "u8", ">i4", ">u8"])
def test_labels_of_any_whole_type_teach_the_same(program: Program, kind: str) -> None:
    x, y = digits().x[:400], digits().y[:400]
    schedule = Schedule(epochs=1, learning_rate=0.05, seed=3)
    plain, other = (
        TrainingRun(Executor(program, {}, seed=3), Dataset(x, labels), schedule) for labels in (y, y.astype(kind))
    )
    finish(plain)
    finish(other)
    assert other.executor.resident_state() == plain.executor.resident_state()
    assert other.test() == plain.test()
    executors = plain.executor, other.executor
    losses = [
        one.step(x[:32], labels, 0.05).loss
        for one, labels in zip(executors, (y[:32], y[:32].astype(kind)), strict=True)
    ]
    assert losses[0] == losses[1]


def test_a_loss_that_is_no_number_stops_with_its_step(program: Program) -> None:
    run = TrainingRun(Executor(program, {}, seed=1), digits(), Schedule(50, 1e6, 1))
    with pytest.raises(NonFiniteLoss, match="Lower the learning rate") as caught:
        finish(run)
    assert caught.value.step == run.step + 1
    assert not np.isfinite(caught.value.loss)


def test_batches_that_do_not_fit_are_refused_before_anything_changes(program: Program) -> None:
    executor = Executor(program, {}, seed=1)
    state = executor.resident_state()
    x, y = digits().x[:32], digits().y[:32]
    refused: dict[str, tuple[Array, Array]] = {
        "batch is 32": (x[:31], y[:31]),
        r"float32 \[1, 8, 8\]": (x.reshape(32, 64), y),
        "The samples are float64": (x.astype(np.float64), y),
        "one whole number for each": (x, y.astype(np.float32)),
        "A label is 10": (x, np.where(np.arange(32) == 3, 10, y)),
        "A label is -1": (x, np.where(np.arange(32) == 3, -1, y)),
    }
    for sentence, (samples, labels) in refused.items():
        with pytest.raises(BadInput, match=sentence):
            executor.step(samples, labels, 0.05)
    with pytest.raises(BadInput, match="there are 0 to 31"):
        executor.step(x, y, 0.05, np.arange(1, 33))
    with pytest.raises(BadInput, match="at least one"):
        executor.evaluate(x[:0], y[:0])
    assert executor.resident_state() == state


def test_weights_deltas_and_states_that_do_not_fit_are_refused(program: Program) -> None:
    executor = Executor(program, {}, seed=1)
    state, delta = executor.resident_state(), executor.delta()
    name = program.delta[0]
    with pytest.raises(BadInput, match="do not name the same tensors"):
        executor.load_delta({name: delta[name]})
    with pytest.raises(BadInput, match="NaN or infinity"):
        executor.load_delta({**delta, program.delta[-1]: np.full_like(delta[program.delta[-1]], np.nan)})
    with pytest.raises(BadInput, match="not this model's weights"):
        executor.load_delta({**delta, name: delta[name][:1]})
    with pytest.raises(BadInput, match="another program"):
        executor.load_resident_state(state[:-1])
    with pytest.raises(BadInput, match="not this model's weights"):
        Executor(program, {name: delta[name].astype(np.float64)}, seed=1)
    with pytest.raises(BadInput, match="There is no rung 99"):
        executor.switch(99)
    assert executor.resident_state() == state
