"""One job from the first batch to the last: rung, step, checkpoint, and the answer to a changed budget.

The newest budget counts from the next batch end on. A step that is measured runs twice from the same state, so that the
result stays the same to the last bit. Where training stands is in the resume file alone.
"""

import contextlib
import math
import os
import time
from pathlib import Path
from typing import Protocol

from hedgerow_agent.budgets import read_rss_bytes
from hedgerow_agent.checkpoints import CheckpointFolder, Resume, ResumeHeader, checkpoint_id
from hedgerow_agent.core.data import Batches, Dataset, split
from hedgerow_agent.core.data.augmentation import parse as parse_augmentation
from hedgerow_agent.core.errors import BadInput, GuardZoneChanged, NonFiniteLoss
from hedgerow_agent.core.evaluation import Evaluation
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.training import Schedule, TrainingRun
from hedgerow_agent.trainer import deltas, protocol
from hedgerow_agent.trainer.backend import open_backend
from hedgerow_agent.trainer.energy import open_meter
from hedgerow_agent.trainer.loading import Unfit, load_data, load_program, load_weights
from hedgerow_agent.trainer.rates import rates
from hedgerow_agent.trainer.rung import choose_rung, roomiest_fit
from hedgerow_agent.trainer.tally import Tally
from hedgerow_plans.plan import Program
from hedgerow_plans.protocol.messages import CheckpointReport, Quality

_STORAGE_RETRY_SECONDS = 1.0


class Stopped(Exception):  # noqa: N818 - control flow, not an error
    """The agent wants the trainer to end."""


class Conversation(Protocol):
    """Whoever wants the job done: an agent at the other end of a pipe, or a person at a terminal."""

    def say(self, message: protocol.Said) -> None:
        """Tell them something."""

    def wait(self) -> protocol.Told:
        """Return what they say next, however long it takes."""

    def heard(self) -> list[protocol.Told]:
        """Return what they said since the last time, without waiting."""


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
    except GuardZoneChanged as error:
        channel.say(protocol.Rejected(reason="PlanBroken", message=protocol.shortened(str(error))))
    except NonFiniteLoss as error:
        message = f"{error} {_what_is_kept(CheckpointFolder(Path(start.folder)))}"
        channel.say(protocol.Failed(reason="Diverged", message=protocol.shortened(message)))


class Job:
    """The state of one run of the trainer."""

    def __init__(self, start: protocol.Start, channel: Conversation) -> None:
        self._start, self._channel = start, channel
        self._folder = CheckpointFolder(Path(start.folder))
        self._program = load_program(Path(start.program_file), start.program_digest)
        self._weights = load_weights(Path(start.weights_file) if start.weights_file else None, start.weights_sha256)
        with contextlib.suppress(OSError):  # whoever writes there first says what is wrong
            self._folder.path.mkdir(parents=True, exist_ok=True)
        self._opened = open_backend(start.backend, os.environ)
        self._dataset = load_data(Path(start.dataset_file), self._program, self._folder.path)
        self._peaks = tuple(plan.promise.peak_bytes for plan in self._program.rungs)
        self._resume = self._find_resume()
        header = self._resume.header if self._resume else None
        self._tally = Tally(self._program, open_meter(Path(start.powercap_folder)), header)
        self._budget_bytes: int | None = None
        self._batches_since_fit = 0
        self._last_said_seconds = -math.inf

    def run(self) -> None:
        """Train from wherever this job stands to its last step."""
        self._tally.total_steps = _total_steps(self._program, self._dataset, self._start)
        footprint, progress = read_rss_bytes(), self._tally.progress()
        data, words = _data_read(self._dataset), self._opened.words
        self._channel.say(protocol.Ready(footprint_bytes=footprint, data=data, backend=words, progress=progress))
        self._await_budget()
        rung = self._await_fit()
        run = self._build(rung)
        self._say_progress()
        while not run.done:
            self._listen()
            self._take_rung(run.executor)
            self._step(run)
        self._finish(run)

    def _build(self, rung: int) -> TrainingRun:
        """Build the arena and bring it to where training stands."""
        start = self._start
        backend = self._opened.backend
        executor = Executor(self._program, self._weights, start.seed, rung, self._folder.path, backend=backend)
        executor.prepare()
        augment = parse_augmentation(start.augment)
        learning_rate, schedule_of_rates = float(start.learning_rate), rates(start.schedule)
        schedule = Schedule(start.epochs, learning_rate, start.seed, schedule_of_rates, augment)
        run = TrainingRun(executor, self._dataset, schedule)
        self._tally.start_on(rung)
        if self._tally.accuracy_before is None:
            self._tally.accuracy_before = run.test().accuracy
        step = self._restore(executor)
        self._tally.step = step
        return TrainingRun(executor, self._dataset, schedule, step)

    def _restore(self, executor: Executor) -> int:
        """Load the resume file, else the checkpoint named, else nothing; return the step it belongs to."""
        if self._resume is not None:
            executor.load_resident_state(self._resume.residents)
            return self._resume.header.step
        named = self._start.from_checkpoint
        report = self._folder.find(named) if named else "none was named"
        content = self._folder.read_delta(named) if named else None
        if named is None or content is None or isinstance(report, str):
            return 0
        executor.load_delta(deltas.decode_delta(content, named))
        self._tally.accuracy_now = report.accuracy
        return report.step

    def _find_resume(self) -> Resume | None:
        """Return the resume file if it is whole and belongs to this very job."""
        resume, start = self._folder.read_resume(), self._start
        if resume is None:
            return None
        header = resume.header
        same = (header.job_uid, header.generation, header.program_digest, header.weights_sha256, header.seed) == (
            start.job_uid,
            start.generation,
            start.program_digest,
            start.weights_sha256,
            start.seed,
        )
        return resume if same and header.resident_bytes == self._program.resident_bytes else None

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
        elif time.monotonic() - self._last_said_seconds >= self._start.progress_seconds:
            self._say_progress()
        if self._start.rest_between_steps_seconds:
            time.sleep(self._start.rest_between_steps_seconds)

    def _checkpoint(self, run: TrainingRun) -> None:
        """Write delta and resume file durably, then say so."""
        # The delta first: going on from an older resume file writes the same delta again, to the last bit.
        executor = run.executor
        self._tally.validation = _quality(run.validate())
        accuracy = self._tally.validation.accuracy
        delta = deltas.encode_delta(executor.delta(), self._start, run.step, accuracy)
        self._tally.accuracy_now = accuracy
        while (report := self._try_to_store(run, delta, accuracy)) is None:
            time.sleep(_STORAGE_RETRY_SECONDS)
            self._listen()
        self._channel.say(protocol.Checkpointed(checkpoint=report, progress=self._tally.progress()))
        self._last_said_seconds = time.monotonic()

    def _try_to_store(self, run: TrainingRun, delta: bytes, accuracy: float | None) -> CheckpointReport | None:
        """Write both files, or say why the disk did not take them."""
        try:
            report = self._folder.add(checkpoint_id(run.step), run.step, delta, accuracy)
            self._folder.write_resume(self._resume_header(run), run.executor.resident_view())
        except OSError as error:
            message = (
                f"The checkpoint of step {run.step} cannot be written: {error}. It is tried again; free some space."
            )
            self._channel.say(protocol.Stalled(message=protocol.shortened(message), progress=self._tally.progress()))
            return None
        return report

    def _resume_header(self, run: TrainingRun) -> ResumeHeader:
        start, tally = self._start, self._tally
        return ResumeHeader(
            job_uid=start.job_uid,
            generation=start.generation,
            program_digest=start.program_digest,
            weights_sha256=start.weights_sha256,
            seed=start.seed,
            step=run.step,
            resident_bytes=self._program.resident_bytes,
            **tally.carried_over(),
        )

    def _finish(self, run: TrainingRun) -> None:
        self._tally.test = _quality(run.test())
        self._tally.accuracy_after = self._tally.test.accuracy
        self._channel.say(protocol.Complete(progress=self._tally.progress()))

    def _take_rung(self, executor: Executor) -> None:
        """Switch to the rung that the budget asks for; wait while there is none."""
        best = roomiest_fit(self._peaks, self._budget_bytes)
        could_go_up = best is not None and best < executor.rung
        self._batches_since_fit = self._batches_since_fit + 1 if could_go_up else 0
        patience = self._start.hysteresis_batches
        chosen = choose_rung(self._peaks, self._budget_bytes, executor.rung, self._batches_since_fit, patience)
        if chosen is None:
            # Give back what can be given back, then wait.
            self._switch(executor, len(self._peaks) - 1)
            chosen = self._await_fit()
        self._switch(executor, chosen)

    def _switch(self, executor: Executor, rung: int) -> None:
        if rung == executor.rung:
            return
        executor.switch(rung)
        self._batches_since_fit = 0
        self._tally.switched_to(rung)
        self._say_progress()

    def _await_fit(self) -> int:
        """Return a rung that fits, after waiting for a budget that allows one if need be."""
        waited = False
        while (rung := roomiest_fit(self._peaks, self._budget_bytes)) is None:
            self._tally.budget_bytes = self._budget_bytes
            needed, budget = self._peaks[-1], self._budget_bytes or 0
            paused = protocol.Paused(needed_bytes=needed, budget_bytes=budget, progress=self._tally.progress())
            self._channel.say(paused)
            self._await_budget()
            waited = True
        if waited:
            self._say_progress()
        return rung

    def _await_budget(self) -> None:
        self._note(self._channel.wait())

    def _listen(self) -> None:
        for message in self._channel.heard():
            self._note(message)

    def _note(self, message: protocol.Told) -> None:
        if isinstance(message, protocol.Stop):
            raise Stopped
        if isinstance(message, protocol.Budget):
            self._budget_bytes = self._tally.budget_bytes = message.budget_bytes

    def _say_progress(self) -> None:
        self._channel.say(protocol.Progressed(progress=self._tally.progress()))
        self._last_said_seconds = time.monotonic()


def _total_steps(program: Program, dataset: Dataset, start: protocol.Start) -> int:
    """Return the steps of the whole job, before there is an arena to run them in."""
    rows = split(len(dataset.x), start.seed).train
    return Batches(rows, program.batch_size, start.seed).per_epoch * start.epochs


def _data_read(dataset: Dataset) -> protocol.DataRead:
    reading = dataset.reading  # nothing is held: samples and labels stay in storage, and orders of rows are computed
    return protocol.DataRead(
        samples=len(dataset.x), at_once_bytes=reading.at_once_bytes, copied_bytes=reading.copied_bytes
    )


def _quality(found: Evaluation) -> Quality:
    loss = found.loss if math.isfinite(found.loss) else None
    return Quality(samples=found.count, loss=loss, accuracy=found.accuracy, f1_macro=found.f1_macro)


def _what_is_kept(folder: CheckpointFolder) -> str:
    kept = folder.good()
    return f"The checkpoint {kept[-1].id} is kept." if kept else "The base model is unchanged."
