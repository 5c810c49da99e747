"""The most memory this process has held since a moment, as the system counts it."""

from pathlib import Path

_RESET_PEAK = "5"
"""What `clear_refs` understands as: the resident set of now is the highest there was (proc(5))."""


class HighWater:
    """The high-water mark of this process; where it cannot be set back, what is held at the moment of reading."""

    def __init__(self) -> None:
        self._field = "VmHWM:" if self._reset() else "VmRSS:"

    def restart(self) -> None:
        """Forget what was held before."""
        self._reset()

    def read_bytes(self) -> int:
        """Return the most that was resident since then."""
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(self._field))

    def _reset(self) -> bool:
        try:
            Path("/proc/self/clear_refs").write_text(_RESET_PEAK)
        except OSError:
            return False
        return True
