"""The trainer's conversation with a person: a budget at the start, a bar meanwhile, and what it came to at the end."""

import signal
import sys
from collections.abc import Callable
from types import FrameType

from hedgerow_agent.checkpoints import CheckpointFolder, checkpoint_id
from hedgerow_agent.local.bar import Bar
from hedgerow_agent.local.problems import EXIT_DIVERGED, EXIT_INTERRUPTED, Problem
from hedgerow_agent.trainer import protocol
from hedgerow_plans.protocol.messages import CheckpointReport, Progress


class Terminal:
    """Says what a job is told, and keeps what it answers; calls `begin` when everything is checked."""

    def __init__(
        self, budget_bytes: int | None, folder: CheckpointFolder, keep: int, bar: Bar, begin: Callable[[], None]
    ) -> None:
        self._budget_bytes = budget_bytes
        self._folder, self._keep = folder, keep
        self._bar, self._begin = bar, begin
        self._interrupted = self._began = self._stalled = False
        self.ready: protocol.Ready | None = None
        self.progress: Progress | None = None
        self.checkpoint: CheckpointReport | None = None
        self.complete = False

    def interrupt(self, _number: int = signal.SIGINT, _frame: FrameType | None = None) -> None:
        """Have the job stop at the next batch end; for a signal."""
        self._interrupted = True

    def wait(self) -> protocol.Told:
        """Return the budget; it never changes here."""
        return protocol.Budget(budget_bytes=self._budget_bytes)

    def heard(self) -> list[protocol.Told]:
        """Return the wish to stop, if there is one."""
        if self._interrupted:
            self._bar.clear()
            raise Problem(self._stopped(), EXIT_INTERRUPTED)
        return []

    def say(self, message: protocol.Said) -> None:
        """Take note of what the job says; what ends it is raised as a problem."""
        match message:
            case protocol.Ready(progress=progress):
                self.ready, self.progress = message, progress
            case protocol.Checkpointed(checkpoint=checkpoint, progress=progress):
                self.progress, self.checkpoint, self._stalled = progress, checkpoint, False
                self._drop_old(checkpoint)
            case protocol.Progressed(progress=progress) | protocol.Complete(progress=progress):
                self.progress, self.complete = progress, isinstance(message, protocol.Complete)
                self._go(progress)
            case protocol.Stalled(message=text):
                self._stall(text)
                return
            case _:
                self._bar.clear()
                raise _problem(message)
        self._bar.draw(self.progress)

    def _go(self, progress: Progress) -> None:
        """Begin once: now the model is built and the data was looked at, so that nothing simple can go wrong."""
        if self._began:
            return
        self._began = True
        self._begin()
        if progress.step:
            found = self._folder.find(checkpoint_id(progress.step))
            self.checkpoint = found if isinstance(found, CheckpointReport) else None
            self._print(_going_on(progress))

    def _stall(self, text: str) -> None:
        """Say once that a checkpoint waits for space; the job tries again until it has it or is stopped."""
        if not self._stalled:
            self._stalled = True
            self._print(text)

    def _print(self, text: str) -> None:
        self._bar.clear()
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def _drop_old(self, newest: CheckpointReport) -> None:
        # A run that begins again, because its resume file is gone, meets later checkpoints of its own.
        until_now = [one for one in self._folder.good() if one.step <= newest.step]
        for old in until_now[: -self._keep]:
            self._folder.discard(old.id)

    def _stopped(self) -> str:
        if self.checkpoint is None:
            return "Stopped before the first checkpoint; the base model is unchanged."
        return f"Stopped; {self.checkpoint.id} is kept in {self._folder.path}. The same command goes on from there."


def _going_on(progress: Progress) -> str:
    if progress.step == progress.total_steps:
        return f"This very run was trained to its end before, step {progress.step}; --fresh trains it anew."
    return f"Going on from step {progress.step} of {progress.total_steps}."


def _problem(message: protocol.Said) -> Problem:
    match message:
        case protocol.Paused(needed_bytes=needed, budget_bytes=budget):
            return Problem(f"The smallest rung needs {needed} bytes and the budget is {budget}; raise the budget.")
        case protocol.Failed(message=text):
            return Problem(text, EXIT_DIVERGED)
        case protocol.Rejected(message=text) | protocol.Error(message=text):
            return Problem(text)
    return Problem(f"The trainer said {message.kind!r}, which nobody expected.")
