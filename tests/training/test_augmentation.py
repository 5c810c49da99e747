"""Samples that are changed as they are read: the same way on every rung, and never when a model is judged."""

from pathlib import Path

import numpy as np
import pytest

from hedgerow_agent.core.data import augmentation
from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.samples import SampleShape, Targets
from hedgerow_agent.core.training import Schedule, TrainingRun
from hedgerow_plans.methods.selection import Full
from support.digits import digits
from support.programs import make_program, same_micro_batch

IMAGES = SampleShape((1, 8, 8), "float32", (10,), Targets.LABELS)
READINGS = SampleShape((64,), "float32", (10,), Targets.LABELS)
TOKENS = SampleShape((12,), "int32", (10,), Targets.LABELS, tokens=100)


def test_rungs_that_read_samples_again_see_the_same_changes(tmp_path: Path) -> None:
    program = make_program("cnn-small", Full())
    hook = augmentation.parse(["shift:1", "noise:0.1"], IMAGES)
    states = []
    for rung in same_micro_batch(program):
        run = TrainingRun(
            Executor(program, {}, seed=1, rung=rung, paging_folder=tmp_path),
            digits(),
            Schedule(1, 0.05, 3, augment=hook),
        )
        for _ in range(3):
            run.run_step()
        states.append(run.executor.resident_state())
    assert len(set(states)) == 1
    plain = TrainingRun(Executor(program, {}, seed=1), digits(), Schedule(1, 0.05, 3))
    for _ in range(3):
        plain.run_step()
    assert plain.executor.resident_state() != states[0]


def test_judging_sees_samples_as_they_are() -> None:
    program = make_program("mlp", Full())
    plain, changed = Executor(program, {}, seed=1), Executor(program, {}, seed=1)
    changed.augment = augmentation.noise(5.0)
    assert plain.evaluate(digits().x, digits().y) == changed.evaluate(digits().x, digits().y)
    assert np.array_equal(plain.predict(digits().x[:9]), changed.predict(digits().x[:9]))


def test_the_data_itself_stays_as_it_is() -> None:
    program, data = make_program("mlp", Full()), digits()
    before = data.x.copy()
    executor = Executor(program, {}, seed=1)
    executor.augment = augmentation.parse(["flip", "shift:2", "noise"], IMAGES)
    executor.step(data.x[:12], data.y[:12], 0.05)
    assert np.array_equal(data.x, before)


@pytest.mark.parametrize("word", range(40))
def test_a_shift_moves_and_loses_what_leaves(word: int) -> None:
    sample = np.arange(1, 26, dtype=np.float32).reshape(1, 5, 5)
    moved = sample.copy()
    augmentation.shift(2)(moved, word * 0x1_0000_0007)
    matches = []
    for down in range(-2, 3):
        for right in range(-2, 3):
            wanted = np.zeros_like(sample)
            wanted[:, max(0, down) : 5 + min(0, down), max(0, right) : 5 + min(0, right)] = sample[
                :, max(0, -down) : 5 - max(0, down), max(0, -right) : 5 - max(0, right)
            ]
            matches.append(np.array_equal(moved, wanted))
    assert sum(matches) == 1


@pytest.mark.parametrize(
    ("samples", "word", "words"),
    [
        (IMAGES, "twirl", "There is no augmentation 'twirl'"),
        (IMAGES, "shift:far", "needs a number after the colon, such as shift:1"),
        (IMAGES, "noise:loud", "needs a number after the colon, such as noise:0.1"),
        *(
            (IMAGES, f"shift:{most}", "from 1 on, below the 8 pixels of a side")
            for most in ("-1", "0", "8", "1.5", "nan", "9" * 40)
        ),
        *((IMAGES, f"noise:{how}", "a deviation above 0 and up to 1e") for how in ("-1", "0", "nan", "inf", "1e39")),
        (IMAGES, "flip:3", "flip takes no number; leave it out"),
        (READINGS, "shift:1", r"'shift:1' is for images, and this model takes float32 \[64\]; leave it out"),
        (READINGS, "flip", r"'flip' is for images, and this model takes float32 \[64\]"),
        (TOKENS, "noise:0.1", r"'noise:0.1' is for samples of numbers, and this model takes int32 \[12\]"),
        (TOKENS, "flip", "'flip' is for images"),
    ],
)
def test_words_that_mean_no_hook_for_these_samples_are_refused_in_a_sentence(
    samples: SampleShape, word: str, words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        augmentation.parse(["noise", word] if samples is not TOKENS else [word], samples)


def test_hooks_that_fit_change_samples_of_any_float_shape() -> None:
    assert augmentation.parse([], TOKENS) is None
    for samples, words in ((IMAGES, ["shift:7", "flip", "noise:0.1"]), (READINGS, ["noise"])):
        hook = augmentation.parse(words, samples)
        assert hook is not None
        sample = np.ones(samples.shape, np.float32)
        hook(sample, 0x1_2345_6789)
        assert not np.array_equal(sample, np.ones(samples.shape))
