"""One run over a stream: a file of lines that may still be written to, each learnt from once."""

import os
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from hedgerow_agent.budgets import read_rss_bytes
from hedgerow_agent.checkpoints import CheckpointFolder, checkpoint_id
from hedgerow_agent.core.data.augmentation import parse as parse_augmentation
from hedgerow_agent.core.data.streams import Windows, follow
from hedgerow_agent.core.errors import CoreError
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.online import OnlineRun, OnlineStep
from hedgerow_agent.local.bar import Bar
from hedgerow_agent.local.problems import EXIT_INTERRUPTED, Problem
from hedgerow_agent.trainer import deltas
from hedgerow_agent.trainer.backend import Opened, open_backend
from hedgerow_agent.trainer.energy import open_meter
from hedgerow_agent.trainer.loading import Unfit, load_weights
from hedgerow_agent.trainer.protocol import DataRead, Ready, Start
from hedgerow_agent.trainer.rung import roomiest_fit
from hedgerow_agent.trainer.tally import Tally
from hedgerow_plans.plan import Program
from hedgerow_plans.protocol.messages import Progress

_LOOK_AGAIN_SECONDS = 0.1


class StreamRun:
    """The stream, the model that learns from it, and the figures."""

    def __init__(self, start: Start, program: Program, budget_bytes: int | None, options: Namespace) -> None:
        self._start, self._options = start, options
        rung = roomiest_fit([plan.promise.peak_bytes for plan in program.rungs], budget_bytes)
        if rung is None:
            raise Problem(f"The smallest rung needs {program.rungs[-1].promise.peak_bytes} bytes; raise the budget.")
        footprint = read_rss_bytes()
        self._folder = CheckpointFolder(Path(start.folder))
        opened = _opened(start)
        self._executor = _executor(start, program, rung, opened)
        self._run = OnlineRun(self._executor, float(start.learning_rate))
        self._windows = Windows(self._executor.samples, options.window or 1, options.hop)
        self._tally = Tally(program, open_meter(Path(start.powercap_folder)), None)
        self._tally.budget_bytes = budget_bytes
        self._tally.start_on(rung)
        self._bar = Bar()
        self._samples = 0
        self.interrupted = False
        held = self._run.held_bytes + self._windows.held_bytes
        self._ready = Ready(
            footprint_bytes=footprint,
            data=DataRead(samples=0, held_bytes=held, at_once_bytes=self._windows.held_bytes, copied_bytes=0),
            backend=opened.words,
            progress=self._tally.progress(),
        )

    def go(self) -> tuple[Ready, Progress]:
        """Learn until the stream ends; return what reading took and what it came to."""
        try:
            for sample, label in self._windows.cut(follow(self._options.data, self._patience())):
                self._samples += 1
                self._learn(sample, label)
                if self.interrupted:
                    break
        except CoreError as error:
            raise Problem(f"{error} {self._kept()}") from None
        finally:
            self._bar.clear()
        if self._run.step == 0:
            wanted = self._executor.program.batch_size
            raise Problem(f"The stream {self._options.data} brought {self._samples} samples; a batch needs {wanted}.")
        self._keep()
        if self.interrupted:
            raise Problem(f"Stopped after {self._samples} samples. {self._kept()}", EXIT_INTERRUPTED)
        data = self._ready.data.model_copy(update={"samples": self._samples})
        return self._ready.model_copy(update={"data": data}), self._tally.progress()

    def _learn(self, sample: Array, label: int) -> None:
        measure = self._tally.measured_count(self._executor.rung) < self._start.measured_steps
        began = time.perf_counter()
        done = self._run.add(sample, label, measure)
        if done is None:
            return
        if not measure:
            self._tally.step_took(time.perf_counter() - began)
        self._note(done)
        if self._run.step % self._start.checkpoint_every_steps == 0:
            self._keep()

    def _note(self, done: OnlineStep) -> None:
        tally = self._tally
        tally.step_done(self._executor.rung, done.step.loss, done.step.measured_peak_bytes)
        tally.total_steps = tally.step
        tally.accuracy_before, tally.accuracy_after = self._run.accuracies()
        self._bar.draw(tally.progress())

    def _keep(self) -> None:
        step, accuracy = self._run.step, self._run.accuracies()[1]
        content = deltas.encode_delta(self._executor.delta(), self._start, step, accuracy)
        self._folder.add(checkpoint_id(step), step, content, accuracy)

    def _kept(self) -> str:
        good = self._folder.good()
        return f"{good[-1].id} is kept in {self._folder.path}." if good else "The base model is unchanged."

    def _patience(self) -> Callable[[], bool]:
        """Return the question whether to wait for another line: until none has come for long enough."""
        state = {"samples": -1, "since": 0.0}

        def more() -> bool:
            if self.interrupted:
                return False
            now = time.monotonic()
            if state["samples"] != self._samples:
                state.update(samples=self._samples, since=now)
            if now - state["since"] >= self._options.idle_seconds:
                return False
            time.sleep(min(_LOOK_AGAIN_SECONDS, self._options.idle_seconds))
            return True

        return more


def _opened(start: Start) -> Opened:
    try:
        return open_backend(start.backend, os.environ)
    except Unfit as error:
        raise Problem(str(error)) from None


def _executor(start: Start, program: Program, rung: int, opened: Opened) -> Executor:
    try:
        weights = load_weights(Path(start.weights_file) if start.weights_file else None, start.weights_sha256)
        executor = Executor(program, weights, start.seed, rung, Path(start.folder), backend=opened.backend)
        executor.augment = parse_augmentation(start.augment, executor.samples)
    except (Unfit, CoreError) as error:
        raise Problem(str(error)) from None
    return executor
