"""The trainer's conversation with a person: a budget at the start, a bar meanwhile, and what it came to at the end."""

import signal
from types import FrameType

from hedgerow_agent.checkpoints import CheckpointFolder
from hedgerow_agent.local.bar import Bar
from hedgerow_agent.local.problems import EXIT_DIVERGED, EXIT_INTERRUPTED, Problem
from hedgerow_agent.trainer import protocol
from hedgerow_plans.protocol.messages import CheckpointReport, Progress


class Terminal:
    """Says what a job is told, and keeps what it answers."""

    def __init__(self, budget_bytes: int | None, folder: CheckpointFolder, keep: int, bar: Bar) -> None:
        self._budget_bytes = budget_bytes
        self._folder, self._keep = folder, keep
        self._bar = bar
        self._interrupted = False
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
                self.progress, self.checkpoint = progress, checkpoint
                self._drop_old()
            case protocol.Progressed(progress=progress) | protocol.Complete(progress=progress):
                self.progress, self.complete = progress, isinstance(message, protocol.Complete)
            case _:
                self._bar.clear()
                raise _problem(message)
        self._bar.draw(self.progress)

    def _drop_old(self) -> None:
        for old in self._folder.good()[: -self._keep]:
            self._folder.discard(old.id)

    def _stopped(self) -> str:
        if self.checkpoint is None:
            return "Stopped before the first checkpoint; the base model is unchanged."
        return f"Stopped; {self.checkpoint.id} is kept in {self._folder.path}. The same command goes on from there."


def _problem(message: protocol.Said) -> Problem:
    match message:
        case protocol.Paused(needed_bytes=needed, budget_bytes=budget):
            return Problem(f"The smallest rung needs {needed} bytes and the budget is {budget}; raise the budget.")
        case protocol.Failed(message=text):
            return Problem(text, EXIT_DIVERGED)
        case protocol.Stalled(message=text) | protocol.Rejected(message=text) | protocol.Error(message=text):
            return Problem(text)
    return Problem(f"The trainer said {message.kind!r}, which nobody expected.")
