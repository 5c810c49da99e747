"""Accuracy, F1 and loss, against scikit-learn's own definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.evaluation import Scores
from hedgerow_agent.core.executor import Executor
from hedgerow_plans.methods.selection import Full
from support.digits import digits
from support.programs import make_program

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
