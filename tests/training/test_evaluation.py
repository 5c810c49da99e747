"""Accuracy, F1 and loss, against scikit-learn's own definitions, and what finding them out takes."""

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_agent.core.arena import GUARD_BYTES, PATTERNS
from hedgerow_agent.core.data import Dataset
from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.evaluation import Evaluation, Scores
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.training import Schedule, TrainingRun
from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.ir import Graph, round_up
from hedgerow_plans.methods.selection import Full
from hedgerow_plans.plan import Program
from hedgerow_plans.program import DeviceCosts, ProgramRequest, build_program
from hedgerow_plans.training.optimizers import Sgd
from support.digits import digits
from support.layer_networks import CASES, Case
from support.programs import make_program, program_of

CLASSES = 5
ANSWERS = st.lists(st.tuples(st.integers(0, CLASSES - 1), st.integers(0, CLASSES - 1)), min_size=1, max_size=60)


@given(ANSWERS, st.integers(1, 20))
def test_figures_are_those_of_scikit_learn(pairs: list[tuple[int, int]], piece: int) -> None:
    from sklearn.metrics import accuracy_score, f1_score  # noqa: PLC0415 - a second of import, and each worker collects

    answers, labels = (np.array(column) for column in zip(*pairs, strict=True))
    logits, losses = np.eye(CLASSES, dtype=np.float32)[answers], np.linspace(0, 1, len(pairs), dtype=np.float32)
    scores = Scores(CLASSES)
    for first in range(0, len(pairs), piece):
        part = slice(first, first + piece)
        scores.add(logits[part], losses[part], labels[part])
    found = scores.result()
    assert found.count == len(pairs)
    assert found.accuracy == pytest.approx(accuracy_score(labels, answers))
    assert found.f1_macro == pytest.approx(f1_score(labels, answers, average="macro"))
    assert found.loss == pytest.approx(float(losses.mean()), abs=1e-6)


def test_a_model_without_classes_has_a_loss_only() -> None:
    scores = Scores(None)
    scores.add(np.zeros((2, 3)), np.array([1.0, 3.0]), np.zeros((2, 3)))
    found = scores.result()
    assert (found.accuracy, found.f1_macro, found.loss, found.count) == (None, None, 2.0, 2)


def test_nothing_to_judge_is_a_sentence() -> None:
    with pytest.raises(BadInput, match="at least one"):
        Scores(3).result()


def test_evaluating_writes_nothing_above_the_plan_it_promised() -> None:
    """Inside the same arena: the evaluation plan fits below the smallest rung, and stays there."""
    program = make_program("cnn-small", Full(), evaluation_batch=2)
    executor = Executor(program, {}, seed=1)
    arena, promised = executor._arena, program.evaluation.promise.peak_bytes
    arena.fill(promised, arena.capacity_bytes, 0xA5)
    residents = executor.resident_state()
    found = executor.evaluate(digits().x, digits().y)
    assert found.count == len(digits().y)
    assert arena.highest_changed(promised, arena.capacity_bytes, 0xA5) == promised
    assert executor.resident_state() == residents


def evaluated_over_patterns(executor: Executor, x: Array, y: Array) -> tuple[Evaluation, int]:
    """Evaluate over two patterns and return the end of the highest byte it wrote, as `measure` does with steps."""
    program, arena = executor.program, executor._arena
    first, end = program.resident_bytes, round_up(program.evaluation.promise.peak_bytes) + GUARD_BYTES
    found, highest = [], 0
    for pattern in PATTERNS:
        arena.fill(first, end, pattern)
        found.append(executor.evaluate(x, y))
        highest = max(highest, arena.highest_changed(first, end, pattern))
    assert found[0] == found[1]
    return found[0], highest


@pytest.mark.parametrize("size", [1, 9])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_evaluating_takes_exactly_what_its_plan_promises(case: Case, size: int) -> None:
    program = program_of(case.build(), Full(), 12, size, loss=case.loss)
    executor = Executor(program, {}, seed=1)
    _, highest = evaluated_over_patterns(executor, *case.draw(20, 0))
    assert highest == program.evaluation.promise.peak_bytes


def test_evaluating_on_the_lowest_rung_finds_the_same_in_the_same_bytes() -> None:
    request = ProgramRequest(
        model="cnn-small",
        method=Full(),
        optimizer=Sgd(momentum=0.9),
        batch_size=32,
        device_class="test",
        costs=DeviceCosts(10**9, 1),
        budget_bytes=1 << 20,
    )
    program = build_program(request)
    assert isinstance(program, Program)
    promised, lowest = program.evaluation.promise.peak_bytes, program.rungs[-1].promise.peak_bytes
    assert promised <= lowest < program.rungs[0].promise.peak_bytes
    executor, (x, y) = Executor(program, {}, seed=1), (digits().x[:200], digits().y[:200])
    on_the_first = evaluated_over_patterns(executor, x, y)
    executor.switch(len(program.rungs) - 1)
    assert evaluated_over_patterns(executor, x, y) == on_the_first
    assert on_the_first[1] == promised
    above = executor._arena.capacity_bytes
    assert executor._arena.highest_changed(lowest, above, 0) == lowest  # nothing was touched that was given back


def tokens_model() -> Graph:
    build = Builder("words")
    x = build.embedding("table", build.tokens(512), 40, 2)
    return build.graph(build.linear("logits", build.flatten("flat", x), 3, gain=1.0))


def run_on_labels() -> TrainingRun:
    """A run on so many samples that their labels, or their numbers, are far more than may be allocated."""
    program = make_program("mlp", Full(), evaluation_batch=64, input_shape=(1, 2, 2))
    data = Dataset(np.zeros((600_000, 1, 2, 2), np.float32), np.arange(600_000) % 10)
    return TrainingRun(Executor(program, {}, seed=1), data, Schedule(1, 0.01, 1))


def run_on_tokens() -> TrainingRun:
    """A run on samples of tokens that are far more than may be allocated."""
    program = program_of(tokens_model(), Full(), evaluation_batch=64)
    x = np.random.default_rng(0).integers(0, 40, (10_000, 512), dtype=np.int32)
    return TrainingRun(Executor(program, {}, seed=1), Dataset(x, np.zeros(10_000, np.int64)), Schedule(1, 0.01, 1))


@pytest.mark.parametrize("make", [run_on_labels, run_on_tokens])
def test_evaluating_allocates_next_to_nothing_beyond_the_arena(make: Callable[[], TrainingRun]) -> None:
    run = make()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        found = run.validate()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    print(f"FIGURE bytes allocated in an evaluation of {found.count} samples ({make.__name__}): {peak - before}")
    assert found.count >= 1500
    assert peak - before <= max(256 * 1024, run.executor.program.evaluation.promise.peak_bytes // 100)


def test_a_sample_that_cannot_be_judged_is_found_wherever_it_lies() -> None:
    executor = Executor(program_of(tokens_model(), Full(), evaluation_batch=64), {}, seed=1)
    x, y = np.zeros((3000, 512), np.int32), np.zeros(3000, np.uint64)
    for row in (0, 1500, 2999):
        odd = x.copy()
        odd[row, 511] = 40
        with pytest.raises(BadInput, match="A token is 40 and the model knows 0 to 39"):
            executor.evaluate(odd, y)
        wrong = y.copy()
        wrong[row] = 2**63
        with pytest.raises(BadInput, match="A label is 9223372036854775808 and the model has classes 0 to 2"):
            executor.evaluate(x, wrong)
    with pytest.raises(BadInput, match="there are 0 to 2999"):
        executor.evaluate(x, y, np.array([2999, 3000]))
    assert executor.evaluate(x, y, np.array([2999, 5])).count == 2
