"""What a job hears and says: the budget in force, where it stands now and then, and why it waits."""

import math
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from hedgerow_agent.trainer import protocol
from hedgerow_agent.trainer.tally import Tally

_LISTEN_SECONDS = 1.0
_STORAGE_RETRY_SECONDS = 1.0

_T = TypeVar("_T")


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


class Talk:
    """The job's side of a conversation."""

    def __init__(self, channel: Conversation, tally: Tally) -> None:
        self._channel, self._tally = channel, tally
        self._said_seconds = -math.inf
        self.stalled = False
        self.budget_bytes: int | None = None

    def say(self, message: protocol.Said) -> None:
        """Say something that tells where the job stands, too."""
        self._channel.say(message)
        self._said_seconds, self.stalled = time.monotonic(), False

    def say_progress(self) -> None:
        """Say where the job stands."""
        self.say(protocol.Progressed(progress=self._tally.progress()))

    def say_progress_after(self, seconds: float) -> None:
        """Say where the job stands if that was not said for so long, or if the last word was that it waits."""
        if self.stalled or time.monotonic() - self._said_seconds >= seconds:
            self.say_progress()

    def stall(self, problem: str, seconds: float) -> None:
        """Say what storage refuses, and wait."""
        self.say(protocol.Stalled(message=protocol.shortened(problem), progress=self._tally.progress()))
        self.stalled = True
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _LISTEN_SECONDS))
            self.listen()

    def until_stored(self, what: str, write: Callable[[], _T]) -> _T:
        """Write something; where the disk does not take it, say so, wait, and try again for as long as it takes."""
        while True:
            try:
                return write()
            except OSError as error:
                problem = f"{what} cannot be written: {error}. It is tried again; free some space."
                self.stall(problem, _STORAGE_RETRY_SECONDS)

    def await_budget(self) -> None:
        """Wait for the next word."""
        self._note(self._channel.wait())

    def listen(self) -> None:
        """Take note of what was said meanwhile."""
        for message in self._channel.heard():
            self._note(message)

    def _note(self, message: protocol.Told) -> None:
        if isinstance(message, protocol.Stop):
            raise Stopped
        if isinstance(message, protocol.Budget):
            self.budget_bytes = self._tally.budget_bytes = message.budget_bytes
