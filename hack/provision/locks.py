"""One run at a time per step: a second run waits, says for whom, and then finds the work done."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from provision.progress import Ticker, say

POLL_SECONDS = 0.1


@contextmanager
def step_lock(root: Path, step: str) -> Iterator[None]:
    """Hold the lock of a step; the kernel lets go of it when the holder dies, however it dies."""
    path = root / "locks" / f"{step}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        if not _try(file.fileno()):
            _wait(file.fileno(), path, step)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(descriptor: int, path: Path, step: str) -> None:
    holder = path.read_text().strip() or "unknown"
    say(f"  {step}: waits for process {holder}, which is at it already")
    ticker = Ticker(f"wait for process {holder} to finish {step}")
    while not _try(descriptor):
        ticker.tick("")
        time.sleep(POLL_SECONDS)
    ticker.end("done")
