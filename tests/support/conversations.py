"""Somebody who wants a job done, in the test's own process: grants every rung, keeps what is said, never interrupts."""

from collections.abc import Callable

from hedgerow_agent.trainer.protocol import Budget, Checkpointed, Said, Told


class Listener:
    """Keeps what a job says, and may do something about it."""

    def __init__(self, react: Callable[[Said], object] = lambda _said: None) -> None:
        self.said: list[Said] = []
        self._react = react

    def say(self, message: Said) -> None:
        """Keep a message."""
        self.said.append(message)
        self._react(message)

    def wait(self) -> Told:
        """Return a budget for which every rung will do."""
        return Budget(budget_bytes=None)

    def heard(self) -> list[Told]:
        """Return nothing."""
        return []

    def kinds(self) -> list[str]:
        """Return what was said, progress left out."""
        return [one.kind for one in self.said if one.kind != "progress"]

    def steps_kept(self) -> list[int]:
        """Return the steps whose checkpoints were announced."""
        return [one.checkpoint.step for one in self.said if isinstance(one, Checkpointed)]
