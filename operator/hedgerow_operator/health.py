"""Whether the operator works: what has been wrong for longer than a moment, as sentences."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Health:
    """Things that must be fine, and since when they are not."""

    clock: Callable[[], float]
    grace_seconds: float
    is_ready: bool = False
    _wrong_since: dict[str, tuple[float, str]] = field(default_factory=dict)

    def note(self, what: str, problem: str | None) -> None:
        """Say that something is fine (None), or what is wrong with it."""
        if problem is None:
            self._wrong_since.pop(what, None)
            return
        since, _ = self._wrong_since.get(what, (self.clock(), ""))
        self._wrong_since[what] = (since, problem)

    def note_tasks(self, tasks: Iterable[asyncio.Task[None]]) -> None:
        """Look whether all tasks are at work that should be until the end; none of them ends by itself."""
        ended = [task.get_name() for task in tasks if task.done()]
        self.note("tasks", f"The task {', '.join(ended)} has ended; the log says why." if ended else None)

    def problems(self, *, at_once: bool = False) -> list[str]:
        """Return what has been wrong for longer than the grace, or at this moment."""
        limit = 0.0 if at_once else self.grace_seconds
        now = self.clock()
        return [
            f"{text} (for {now - since:.0f} s)" for since, text in self._wrong_since.values() if now - since >= limit
        ]
