"""Learning from a stream: a step whenever a batch of samples has come, and each batch is judged before it teaches.

So every sample is first one the model has never seen: the accuracy over the last batches is what it is worth now.
Memory is one batch, however long the stream is.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.evaluation import Evaluation
from hedgerow_agent.core.executor import Executor, StepResult
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.samples import Targets

_JUDGED_BATCHES = 10


@dataclass(frozen=True, slots=True)
class OnlineStep:
    """What one batch of a stream showed: how good the model was on it, and the step it then taught."""

    before: Evaluation
    step: StepResult


class OnlineRun:
    """Collects samples and takes steps; `step` counts optimiser steps, from 0 or from where a run goes on."""

    def __init__(self, executor: Executor, learning_rate: float, step: int = 0) -> None:
        self.executor = executor
        self._learning_rate = learning_rate
        size, samples = executor.program.batch_size, executor.samples
        self._x = np.zeros((size, *samples.shape), samples.dtype)
        self._y = np.zeros(size, np.int32)
        self._filled = 0
        self.step = executor.steps_taken = step
        self._first: list[Evaluation] = []
        self._last: deque[Evaluation] = deque(maxlen=_JUDGED_BATCHES)

    @property
    def held_bytes(self) -> int:
        """Bytes that wait for a batch to be full."""
        return self._x.nbytes + self._y.nbytes

    def add(self, sample: Array, label: int, measure: bool = False) -> OnlineStep | None:
        """Take one sample; if it fills the batch, judge the model on it and learn from it."""
        # One sample that is none must not cost the others: it is refused before it counts.
        self._x[self._filled], self._y[self._filled] = self._checked(sample, label)
        self._filled += 1
        if self._filled < len(self._y):
            return None
        self._filled = 0
        before = self.executor.evaluate(self._x, self._y)
        self._note(before)
        take = self.executor.measure if measure else self.executor.step
        result = take(self._x, self._y, self._learning_rate)
        self.step += 1
        return OnlineStep(before, result)

    def accuracies(self) -> tuple[float | None, float | None]:
        """Return the accuracy over the first batches and over the last ones, each before it was learnt from."""
        return _mean(self._first), _mean(self._last)

    def _checked(self, sample: Array, label: int) -> tuple[Array, int]:
        samples = self.executor.samples
        if sample.shape != samples.shape:
            raise BadInput(f"A sample is {list(sample.shape)} and the model takes {list(samples.shape)}; bring such.")
        samples.check_labels(np.array([label]))  # as wide as it comes: cut to 32 bits it might be a class
        return samples.taken(sample), label if samples.targets is Targets.LABELS else 0

    def _note(self, found: Evaluation) -> None:
        if len(self._first) < _JUDGED_BATCHES:
            self._first.append(found)
        self._last.append(found)


def _mean(found: Iterable[Evaluation]) -> float | None:
    known = [one.accuracy for one in found if one.accuracy is not None]
    return sum(known) / len(known) if known else None
