"""One job from the first batch to the last: arena, step, checkpoint, and the answer to a changed budget.

The newest budget counts from the next batch end on. A step that is measured runs twice from the same state, so that the
result stays the same to the last bit. Where training stands is in the resume file alone.
"""

import contextlib
import gc
import math
import os
import time
from pathlib import Path

from hedgerow_agent.budgets import read_rss_bytes
from hedgerow_agent.core.data.augmentation import parse as parse_augmentation
from hedgerow_agent.core.errors import BadInput, CoreError, Diverged, NonFiniteModel, PagingFailed
from hedgerow_agent.core.evaluation import Evaluation
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.samples import sample_shape
from hedgerow_agent.core.training import Schedule, TrainingRun
from hedgerow_agent.trainer import protocol
from hedgerow_agent.trainer.backend import open_backend
from hedgerow_agent.trainer.conversation import Conversation, Stopped, Talk
from hedgerow_agent.trainer.energy import open_meter
from hedgerow_agent.trainer.keeping import Keeping
from hedgerow_agent.trainer.loading import Unfit, data_read, load_data, load_program, load_weights, total_steps
from hedgerow_agent.trainer.rates import rates
from hedgerow_agent.trainer.switching import Switching
from hedgerow_agent.trainer.tally import Tally
from hedgerow_plans.protocol.messages import Quality

_PAGING_RETRY_SECONDS = 10.0
"""Longer than where a write is tried again, because everything is built anew for it."""


def run_job(start: protocol.Start, channel: Conversation) -> None:
    """Run a job to one of its ends and say which it was."""
    try:
        Job(start, channel).run()
    except Stopped:
        return
    except Unfit as error:
        channel.say(protocol.Rejected(reason=error.reason, message=protocol.shortened(str(error))))
    except BadInput as error:
        channel.say(protocol.Rejected(reason="InputsUnfit", message=protocol.shortened(str(error))))
    except Diverged as error:
        message = f"{error} {Keeping(start).in_words()}"
        channel.say(protocol.Failed(reason="Diverged", message=protocol.shortened(message)))
    except CoreError as error:  # what else the core refuses is the plan's fault, and would be again
        channel.say(protocol.Rejected(reason="PlanBroken", message=protocol.shortened(str(error))))


class Job:
    """The state of one run of the trainer."""

    def __init__(self, start: protocol.Start, channel: Conversation) -> None:
        self._start, self._path = start, Path(start.folder)
        self._program = load_program(Path(start.program_file), start.program_digest)
        self._weights = load_weights(Path(start.weights_file) if start.weights_file else None, start.weights_sha256)
        self._augment = parse_augmentation(start.augment, sample_shape(self._program))
        with contextlib.suppress(OSError):  # whoever writes there first says what is wrong
            self._path.mkdir(parents=True, exist_ok=True)
        self._opened = open_backend(start.backend, os.environ)
        self._dataset = load_data(Path(start.dataset_file), self._program, self._path)
        self._keeping = Keeping(start)
        self._resume = self._keeping.find_resume(self._program.resident_bytes)
        header = self._resume.header if self._resume else None
        self._tally = Tally(self._program, open_meter(Path(start.powercap_folder)), header)
        self._talk = Talk(channel, self._tally)
        self._switching = Switching(self._program, start.hysteresis_batches, self._talk, self._tally)

    def run(self) -> None:
        """Train from wherever this job stands to its last step, and on from what is kept if storage fails a step."""
        self._tally.total_steps = total_steps(self._program, self._dataset, self._start)
        footprint, progress = read_rss_bytes(), self._tally.progress()
        data, words = data_read(self._dataset), self._opened.words
        self._talk.say(protocol.Ready(footprint_bytes=footprint, data=data, backend=words, progress=progress))
        self._talk.await_budget()
        while problem := self._train():
            gc.collect()  # the arena of the run that failed; there are never two
            self._talk.stall(f"{problem} Training goes on from what is kept.", _PAGING_RETRY_SECONDS)
            self._resume = self._keeping.find_resume(self._program.resident_bytes)

    def _train(self) -> str:
        """Train to the end; return what is wrong if tensors could not be paged, which leaves half a step behind."""
        try:
            with contextlib.closing(self._build(self._switching.await_fit())) as executor:
                run = self._begin(executor)
                while not run.done:
                    self._talk.listen()
                    self._switching.follow(executor)
                    self._step(run)
                self._finish(run)
        except PagingFailed as error:
            return str(error)
        return ""

    def _build(self, rung: int) -> Executor:
        backend = self._opened.backend
        executor = Executor(self._program, self._weights, self._start.seed, rung, self._path, backend=backend)
        self._tally.start_on(rung)
        return executor

    def _begin(self, executor: Executor) -> TrainingRun:
        """Bring the arena to where training stands."""
        executor.prepare()
        start, tally = self._start, self._tally
        rate, augment = float(start.learning_rate), self._augment
        schedule = Schedule(start.epochs, rate, start.seed, rates(start.schedule), augment)
        run = TrainingRun(executor, self._dataset, schedule)
        if tally.accuracy_before is None:
            tally.accuracy_before = run.test().accuracy
        self._keeping.restore(executor, self._resume, tally)
        if not self._talk.stalled:  # else the first step shows whether storage serves again
            self._talk.say_progress()
        if self._resume is None:
            # Killed between the first checkpoint and its resume file, it would go on without the optimiser's state.
            what = f"The resume file of step {tally.step}"
            self._talk.until_stored(what, lambda: self._keeping.write_resume(executor, tally.step, tally))
        self._resume = None  # as large as the residents, and nobody needs it any more
        return TrainingRun(executor, self._dataset, schedule, tally.step)

    def _step(self, run: TrainingRun) -> None:
        tally, rung = self._tally, run.executor.rung
        measure = tally.measured_count(rung) < self._start.measured_steps
        began = time.perf_counter()
        result = run.run_step(measure)
        if not measure:
            tally.step_took(time.perf_counter() - began)
        tally.step_done(rung, result.loss, result.measured_peak_bytes)
        if run.step % self._start.checkpoint_every_steps == 0 or run.done:
            self._checkpoint(run)
        else:
            self._talk.say_progress_after(self._start.progress_seconds)
        if self._start.rest_between_steps_seconds:
            time.sleep(self._start.rest_between_steps_seconds)

    def _checkpoint(self, run: TrainingRun) -> None:
        """Write delta and resume file durably, then say so; what diverged is refused before it replaces anything."""
        accuracy = self._judge(run)
        delta = self._keeping.encode(run.executor, run.step, accuracy)
        self._tally.accuracy_now = accuracy
        what, tally = f"The checkpoint of step {run.step}", self._tally
        report = self._talk.until_stored(what, lambda: self._keeping.write(run.executor, delta, run.step, tally))
        self._talk.say(protocol.Checkpointed(checkpoint=report, progress=self._tally.progress()))

    def _judge(self, run: TrainingRun) -> float | None:
        """Evaluate what is about to be kept, with the test split too if nothing comes after it."""
        self._tally.validation = _quality(run.validate(), run.step, "validation")
        if run.done:
            self._judge_at_the_end(run)
        return self._tally.validation.accuracy

    def _judge_at_the_end(self, run: TrainingRun) -> None:
        self._tally.test = _quality(run.test(), run.step, "test")
        self._tally.accuracy_after = self._tally.test.accuracy

    def _finish(self, run: TrainingRun) -> None:
        if self._tally.test is None:  # the last step was taken by a trainer that could not say so any more
            self._judge_at_the_end(run)
        self._talk.say(protocol.Complete(progress=self._tally.progress()))


def _quality(found: Evaluation, step: int, split_name: str) -> Quality:
    if not math.isfinite(found.loss):
        raise NonFiniteModel(step, f"the {split_name} loss is {found.loss}")
    return Quality(samples=found.count, loss=found.loss, accuracy=found.accuracy, f1_macro=found.f1_macro)
