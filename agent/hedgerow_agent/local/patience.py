"""How long a stream is waited for: until nothing has come for long enough, or somebody wants to stop."""

import time
from collections.abc import Callable

_LOOK_AGAIN_SECONDS = 0.1


class Patience:
    """Answers at the end of a stream whether to look again."""

    def __init__(self, idle_seconds: float, stopped: Callable[[], bool]) -> None:
        self._idle_seconds, self._stopped = idle_seconds, stopped
        self._since = time.monotonic()

    def more(self, came: bool) -> bool:
        """Wait a little and return true, or return false; `came` says whether there was anything since last time."""
        if self._stopped():
            return False
        now = time.monotonic()
        if came:  # counted from here: what took its time was learning
            self._since = now
        if now - self._since >= self._idle_seconds:
            return False
        time.sleep(min(_LOOK_AGAIN_SECONDS, self._idle_seconds))
        return True
