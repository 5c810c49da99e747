"""A progress bar on one line of a terminal; nothing at all where nobody watches."""

import sys
from typing import TextIO

from hedgerow_plans.protocol.messages import Progress

_WIDTH = 24


class Bar:
    """Draws over itself; whoever prints something else clears it first."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._is_watched = self._stream.isatty()
        self._length = 0

    def draw(self, progress: Progress) -> None:
        """Show where training is."""
        if not self._is_watched:
            return
        text = line(progress)
        self._stream.write("\r" + text.ljust(self._length))
        self._stream.flush()
        self._length = len(text)

    def clear(self) -> None:
        """Leave an empty line."""
        if self._length:
            self._stream.write("\r" + " " * self._length + "\r")
            self._stream.flush()
            self._length = 0


def line(progress: Progress) -> str:
    """Return the bar as text."""
    total = max(1, progress.total_steps)
    done = min(_WIDTH, _WIDTH * progress.step // total)
    words = [f"[{'#' * done}{'.' * (_WIDTH - done)}]", f"{progress.step}/{progress.total_steps}"]
    if progress.loss is not None:
        words.append(f"loss {progress.loss:.4f}")
    if progress.accuracy_now is not None:
        words.append(f"accuracy {progress.accuracy_now:.3f}")
    words.append(f"rung {progress.rung + 1}/{progress.rungs}")
    if progress.step_microseconds:
        left = (progress.total_steps - progress.step) * progress.step_microseconds // 10**6
        words += [f"{progress.step_microseconds / 1000:.2f} ms/step", f"{left // 60}:{left % 60:02d} left"]
    return "  ".join(words)
