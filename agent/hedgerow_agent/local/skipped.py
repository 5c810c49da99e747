"""Lines of a stream that nothing can be learnt from: a sensor's bad moment must not cost what it said before."""

from collections.abc import Callable
from pathlib import Path

from hedgerow_agent.core.errors import BadInput

_TOLD = 3


class Skipped:
    """Counts such lines, and tells the first of them."""

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        self._path, self._say = path, say
        self.count = 0

    def add(self, line: int, error: BadInput) -> None:
        """Count a line, and say what is wrong with it unless enough was said."""
        self.count += 1
        problem = str(error)
        if self.count <= _TOLD:
            self._say(f"Line {line} of {self._path} is skipped: {problem[:1].lower()}{problem[1:]}")
        elif self.count == _TOLD + 1:
            self._say(f"Line {line} of {self._path} is skipped too; from now on such lines are only counted.")

    def words(self) -> str:
        """Return how many there were, as the end of a phrase; empty if there were none."""
        return f", {self.count} lines skipped" if self.count else ""
