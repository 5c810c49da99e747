"""A job whose numbers overflow: what is kept is the last model that works, and the files around it say the same."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hedgerow_agent.checkpoints import CheckpointFolder
from hedgerow_agent.core.evaluation import Evaluation
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.training import TrainingRun
from hedgerow_agent.trainer.deltas import decode_delta
from hedgerow_agent.trainer.job import run_job
from hedgerow_agent.trainer.protocol import Failed, Start
from hedgerow_agent.weights import map_tensors
from support.conversations import Listener
from support.devices import digits, small_program
from support.lone_trainers import lone_start

Job = Callable[..., Start]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    def start(**changes: object) -> Start:
        return lone_start(tmp_path, small_program()).model_copy(update=changes)

    return start


def run(start: Start) -> Listener:
    listener = Listener()
    run_job(start, listener)
    return listener


def last_words(listener: Listener) -> str:
    said = listener.said[-1]
    assert isinstance(said, Failed), said
    assert said.reason == "Diverged"
    return said.message


def contents(start: Start) -> dict[str, bytes]:
    folder = Path(start.folder)
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def loss_of_what_is_kept(start: Start) -> float:
    """Load the newest checkpoint as predictions would, and evaluate it on all data."""
    folder = CheckpointFolder(Path(start.folder))
    newest = folder.good()[-1].id
    content = folder.read_delta(newest)
    assert content is not None
    executor = Executor(small_program(), map_tensors(Path(start.weights_file)), start.seed)
    executor.load_delta(decode_delta(content, newest))
    return executor.evaluate(*digits()).loss


def step_in(words: str, pattern: str) -> int:
    """Return the step that a sentence names; which one it is depends on data and on how sums are rounded."""
    found = re.match(pattern, words)
    assert found, words
    return int(found[1])


@pytest.mark.parametrize(
    ("learning_rate", "every", "pattern"),
    [
        # The loss of each step is a number, and the model after the last one has none.
        ("1", 1, r"After step (\d+) the validation loss is"),
        # The loss of a step itself is none, before the next checkpoint is due.
        ("10", 2, r"The loss of step (\d+) is nan"),
    ],
)
def test_a_job_that_diverges_keeps_its_last_model_that_works(
    job: Job, learning_rate: str, every: int, pattern: str
) -> None:
    start = job(learning_rate=learning_rate, checkpoint_every_steps=every)
    listener = run(start)
    kept = list(range(every, step_in(last_words(listener), pattern), every))
    assert kept
    assert listener.steps_kept() == kept
    assert f"The checkpoint step-{kept[-1]:06d} is kept and the same job goes on from there." in last_words(listener)
    folder = CheckpointFolder(Path(start.folder))
    assert [one.step for one in folder.good()] == kept
    resume = folder.read_resume()
    assert resume is not None
    assert resume.header.step == kept[-1]
    assert np.isfinite(loss_of_what_is_kept(start))


def test_the_same_job_again_goes_on_from_the_model_that_works_and_leaves_it_as_it_was(job: Job) -> None:
    start = job(learning_rate="1", checkpoint_every_steps=1)
    first = last_words(run(start))
    before = contents(start)
    again = run(start)
    assert again.steps_kept() == []
    assert last_words(again) == first
    assert contents(start) == before


def assert_nothing_learnt(start: Start) -> None:
    assert list(contents(start)) == ["resume.bin"]
    assert CheckpointFolder(Path(start.folder)).is_empty()


def test_the_base_model_stays_when_the_first_checkpoint_would_be_no_model(job: Job) -> None:
    start = job(learning_rate="1e19", checkpoint_every_steps=1)
    listener = run(start)
    assert listener.kinds() == ["ready", "failed"]
    assert "After step 1 the validation loss is" in last_words(listener)
    assert "The base model is unchanged." in last_words(listener)
    assert_nothing_learnt(start)


def test_a_parameter_that_is_no_number_is_named_although_the_losses_are_some(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A class that no sample has may go to infinity without a sign of it in any loss."""
    delta = Executor.delta

    def spoilt(executor: Executor) -> dict[str, Any]:
        found = delta(executor)
        found[max(found)].flat[-1] = np.inf
        return found

    monkeypatch.setattr(Executor, "delta", spoilt)
    start = job(checkpoint_every_steps=5)
    listener = run(start)
    assert f"After step 5 {max(small_program().delta)} holds NaN or infinity" in last_words(listener)
    assert_nothing_learnt(start)


def test_the_last_model_is_tested_before_it_is_kept(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    tested = TrainingRun.test

    def overflowing(run: TrainingRun) -> Evaluation:
        found = tested(run)
        return Evaluation(found.accuracy, np.inf, found.count) if run.done else found

    monkeypatch.setattr(TrainingRun, "test", overflowing)
    start = job(checkpoint_every_steps=20)
    listener = run(start)
    assert listener.kinds() == ["ready", "checkpoint", "failed"]
    assert "After step 39 the test loss is inf" in last_words(listener)
    assert [one.step for one in CheckpointFolder(Path(start.folder)).good()] == [20]
