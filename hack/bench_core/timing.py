"""The stop-watch of both sides: medians of steps, what else ran on the same processors, and memory above import.

Standard library only, because it is imported beside torch and beside our core alike.
"""

import os
import resource
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

_BUSY_FIELDS = (0, 1, 2, 5, 6, 7)
"""user, nice, system, irq, softirq and steal of a line in /proc/stat; waiting is not work."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What one process measured."""

    median_ms: float
    fastest_ms: float
    steps: int
    foreign_cores: float  # busy with something else, of the processors this process may use
    peak_bytes: int  # resident high-water mark above what was resident after the imports
    loss: float  # of the last step

    def as_json(self) -> dict[str, float | int]:
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Settings:
    """How long to measure: at least so many steps and so many seconds, after some that do not count."""

    seconds: float = 3.0
    fewest_steps: int = 7
    warm_up_steps: int = 5


def resident_bytes() -> int:
    """Return what this process has in memory now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def peak_resident_bytes() -> int:
    """Return the most this process ever had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _busy_seconds(processors: set[int]) -> float:
    ticks = 0
    for line in Path("/proc/stat").read_text(encoding="ascii").splitlines():
        name, *counts = line.split()
        if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in processors:
            ticks += sum(int(counts[at]) for at in _BUSY_FIELDS)
    return ticks / os.sysconf("SC_CLK_TCK")


def measure(step: Callable[[], float], settings: Settings, after_import_bytes: int) -> Sample:
    """Time a step that returns its loss; the loop is measured together with whoever else used our processors."""
    for _ in range(settings.warm_up_steps):
        step()
    processors = os.sched_getaffinity(0)
    busy, own, begin = _busy_seconds(processors), time.process_time(), time.perf_counter()
    durations: list[float] = []
    loss, now = 0.0, begin
    while len(durations) < settings.fewest_steps or now - begin < settings.seconds:
        before = time.perf_counter()
        loss = step()
        now = time.perf_counter()
        durations.append(now - before)
    own_seconds = time.process_time() - own
    foreign = max(0.0, _busy_seconds(processors) - busy - own_seconds) / (now - begin)
    durations.sort()
    return Sample(
        median_ms=1e3 * durations[len(durations) // 2],
        fastest_ms=1e3 * durations[0],
        steps=len(durations),
        foreign_cores=foreign,
        peak_bytes=peak_resident_bytes() - after_import_bytes,
        loss=loss,
    )
