"""Tells a person what is going on: a live line on a terminal, else a line now and then. Writes to stderr."""

import shutil
import sys
import time

QUIET_SECONDS = 10.0
"""Without a terminal, how long a step may run before it says again that it is at work."""


def say(sentence: str) -> None:
    """Say one thing on a line of its own."""
    print(sentence, file=sys.stderr, flush=True)


class Ticker:
    """Shows that one step goes on: what it does, for how many seconds, and what it is at just now."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.started = time.monotonic()
        self.last_said = self.started
        self.is_live = sys.stderr.isatty()

    @property
    def elapsed_seconds(self) -> float:
        """Return how long the step has been running."""
        return time.monotonic() - self.started

    def tick(self, detail: str) -> None:
        """Show the state; call it as often as you like."""
        line = f"  {self.what}: {self.elapsed_seconds:.0f} s  {detail[-70:]}"
        if self.is_live:
            line = line[: shutil.get_terminal_size().columns - 1]  # a wrapped line could not be overwritten
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() - self.last_said >= QUIET_SECONDS:
            self.last_said = time.monotonic()
            say(line)

    def end(self, outcome: str) -> None:
        """Close the live line and say how it ended."""
        if self.is_live:
            print("\r\033[K", end="", file=sys.stderr)
        say(f"  {self.what}: {outcome} after {self.elapsed_seconds:.1f} s")
