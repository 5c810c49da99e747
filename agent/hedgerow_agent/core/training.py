"""One run over a dataset: which batch comes next, when it is over, and how good the model is.

The whole position of a run is the number of steps taken, so that going on after a restart needs no more than that
number and the executor's resident state. Checkpoints, budgets and messages belong to the trainer process around it.
"""

from dataclasses import dataclass

from hedgerow_agent.core.data import Batches, Dataset, split
from hedgerow_agent.core.evaluation import Evaluation
from hedgerow_agent.core.executor import Executor, StepResult
from hedgerow_agent.core.kernels.call import Augment
from hedgerow_plans.training import schedules

CONSTANT = schedules.Constant()


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long and how fast to train."""

    epochs: int
    learning_rate: float
    seed: int
    rates: schedules.Schedule = CONSTANT
    augment: Augment | None = None


class TrainingRun:
    """An executor and the data it works through; `step` counts optimiser steps from 0."""

    def __init__(self, executor: Executor, dataset: Dataset, schedule: Schedule, step: int = 0) -> None:
        executor.samples.check_arrays(dataset.x, dataset.y)
        executor.samples.check_rows(dataset.x, dataset.y, slice(0, len(dataset.x)))
        self.executor = executor
        self._dataset = dataset
        self._schedule = schedule
        self._split = split(len(dataset.x), schedule.seed)
        self._batches = Batches(self._split.train, executor.program.batch_size, schedule.seed)
        self._length = schedules.Length(schedule.epochs, self._batches.per_epoch)
        self.step = step
        executor.steps_taken, executor.augment = step, schedule.augment

    @property
    def total_steps(self) -> int:
        """Steps of the whole run."""
        return self._length.steps

    @property
    def learning_rate(self) -> float:
        """The rate of the next step."""
        return self._schedule.learning_rate * self._schedule.rates.share(self.step, self._length)

    @property
    def done(self) -> bool:
        """Whether every step was taken."""
        return self.step >= self.total_steps

    def run_step(self, measure: bool = False) -> StepResult:
        """Take the next step, and measure its memory if asked."""
        take = self.executor.measure if measure else self.executor.step
        result = take(self._dataset.x, self._dataset.y, self.learning_rate, self._batches.rows(self.step))
        self.step += 1
        return result

    def validate(self) -> Evaluation:
        """Evaluate on the samples kept for checkpoints."""
        return self.executor.evaluate(self._dataset.x, self._dataset.y, self._split.validation)

    def test(self) -> Evaluation:
        """Evaluate on the samples kept for the figures before and after."""
        return self.executor.evaluate(self._dataset.x, self._dataset.y, self._split.test)
