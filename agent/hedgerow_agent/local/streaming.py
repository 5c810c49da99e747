"""One run over a stream: a file of lines that may still be written to, each learnt from once."""

import sys
import time
from argparse import Namespace
from contextlib import closing
from pathlib import Path

from hedgerow_agent.budgets import read_rss_bytes
from hedgerow_agent.core.data.streams import Sample
from hedgerow_agent.core.data.tail import Line, Tail
from hedgerow_agent.core.errors import BadInput, CoreError, Diverged
from hedgerow_agent.core.online import OnlineRun, OnlineStep
from hedgerow_agent.local.bar import Bar
from hedgerow_agent.local.keeper import Keeper, mark_in
from hedgerow_agent.local.opening import executor_for, opened_for, windows_of
from hedgerow_agent.local.patience import Patience
from hedgerow_agent.local.problems import EXIT_DIVERGED, EXIT_INTERRUPTED, Problem
from hedgerow_agent.local.skipped import Skipped
from hedgerow_agent.trainer.energy import open_meter
from hedgerow_agent.trainer.protocol import DataRead, Ready, Start
from hedgerow_agent.trainer.rung import roomiest_fit
from hedgerow_agent.trainer.tally import Tally
from hedgerow_plans.plan import Program
from hedgerow_plans.protocol.messages import Progress

_HOPELESS_LINES = 100
"""So many lines at the beginning, none of them a reading, are no stream for this model."""


class StreamRun:
    """The stream, the model that learns from it, and the figures."""

    def __init__(self, start: Start, program: Program, budget_bytes: int | None, keep: int, options: Namespace) -> None:
        self._start, self._options = start, options
        rung = roomiest_fit([plan.promise.peak_bytes for plan in program.rungs], budget_bytes)
        if rung is None:
            raise Problem(f"The smallest rung needs {program.rungs[-1].promise.peak_bytes} bytes; raise the budget.")
        footprint = read_rss_bytes()
        opened = opened_for(start)
        self._executor = executor_for(start, program, rung, opened)
        self._windows = windows_of(self._executor, options)
        self._keeper = Keeper(start, keep, self._say)
        header = self._keeper.restore(self._executor)
        self._run = OnlineRun(self._executor, float(start.learning_rate), header.step if header else 0)
        self._tally = Tally(program, open_meter(Path(start.powercap_folder)), header)
        self._tally.budget_bytes, self._tally.total_steps = budget_bytes, self._tally.step
        self._tally.accuracy_after = self._tally.accuracy_now
        self._tally.start_on(rung)
        self._accuracy_before, self._mark = self._tally.accuracy_before, mark_in(header)
        self._bar = Bar()
        self._skipped = Skipped(options.data, self._say)
        self._readings = self._samples = 0
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
        self._keeper.begin(self._run.step)
        try:
            with closing(Tail(self._options.data)) as tail:
                self._go_on(tail)
                self._follow(tail)
            self._keep()
        except Diverged as error:
            raise Problem(f"{error} {self._keeper.words()}", EXIT_DIVERGED) from None
        except BadInput as error:  # the stream broke off; what it taught before is as good as ever
            self._keep()
            raise Problem(f"{error} {self._keeper.words()}") from None
        except CoreError as error:
            raise Problem(f"{error} {self._keeper.words()}") from None
        finally:
            self._bar.clear()
        return self._result()

    def _go_on(self, tail: Tail) -> None:
        """Begin where this very run stopped reading, if it did and the file is the same."""
        if not self._run.step:
            return
        where = "with the lines that come now"
        if self._mark is not None:
            where = "at the beginning of the stream, which is another file now"
            if tail.go_to(self._mark):
                self._windows.go_on()
                where = f"behind byte {self._mark.end} of the stream"
        self._say(f"Going on from step {self._run.step}, {where}.")

    def _follow(self, tail: Tail) -> None:
        patience = Patience(self._options.idle_seconds, lambda: self.interrupted)
        for line in tail.lines(patience.more):
            sample = self._sample(line)
            if sample is not None:
                self._learn(sample, tail, line)
            if self.interrupted:
                return

    def _sample(self, line: Line) -> Sample | None:
        """Return the sample that a line completes; a line that is no reading is passed over."""
        try:
            sample = self._windows.add(line.numbers(), line.place)
        except BadInput as error:
            self._windows.skip()
            self._skipped.add(line.place.line, error)
            if self._skipped.count == _HOPELESS_LINES and not self._readings and not self._run.step:
                raise Problem(
                    f"The first {_HOPELESS_LINES} lines of {self._options.data} are no readings for this model; give "
                    f"it the stream, and the --window, that it was made for. The last of them: {error}"
                ) from None
            return None
        self._readings += 1
        return sample

    def _learn(self, sample: Sample, tail: Tail, line: Line) -> None:
        self._samples += 1
        measure = self._tally.measured_count(self._executor.rung) < self._start.measured_steps
        began = time.perf_counter()
        done = self._run.add(*sample, measure)
        if done is None:
            return
        if not measure:
            self._tally.step_took(time.perf_counter() - began)
        self._note(done)
        self._mark = tail.mark(self._windows.begin, line.end)
        if self._run.step % self._start.checkpoint_every_steps == 0:
            self._keep()

    def _note(self, done: OnlineStep) -> None:
        tally = self._tally
        tally.step_done(self._executor.rung, done.step.loss, done.step.measured_peak_bytes)
        tally.total_steps = tally.step
        first, last = self._run.accuracies()
        tally.accuracy_before = first if self._accuracy_before is None else self._accuracy_before
        tally.accuracy_now = tally.accuracy_after = last
        self._bar.draw(tally.progress())

    def _keep(self) -> None:
        self._keeper.keep(self._executor, self._tally, self._mark)

    def _result(self) -> tuple[Ready, Progress]:
        """Return the figures, or raise why there are none to be proud of."""
        came, kept = f"{self._samples} samples{self._skipped.words()}", self._keeper.words()
        kept = f"{self._keeper.problem} {kept}".lstrip()
        if self.interrupted:
            on = " The same command goes on from there." if self._run.step else ""
            raise Problem(f"Stopped after {came}. {kept}{on}", EXIT_INTERRUPTED)
        if self._keeper.problem:
            raise Problem(kept)
        if self._run.step == 0:
            wanted = self._executor.program.batch_size
            raise Problem(f"The stream {self._options.data} brought {came}; a batch needs {wanted}.")
        data = self._ready.data.model_copy(update={"samples": self._samples, "skipped": self._skipped.count})
        return self._ready.model_copy(update={"data": data}), self._tally.progress()

    def _say(self, sentence: str) -> None:
        self._bar.clear()
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()
