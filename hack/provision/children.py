"""Runs tools as child processes that end with us, showing progress from the last line of what they print.

A child gets a process group of its own, so that an interrupt reaches all it started. No shell, no input.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from provision.problems import disk_full, explain_failure
from provision.progress import Ticker, say

POLL_SECONDS = 0.1
GRACE_SECONDS = 5.0
PR_SET_PDEATHSIG = 1
FULL_BYTES = 64 * 1024


def run(
    tool: str,
    arguments: Sequence[str | Path],
    *,
    purpose: str,
    log: Path,
    cwd: Path = Path("/"),
    environ: Mapping[str, str] | None = None,
    finish_when_interrupted: bool = False,
) -> str:
    """Run a tool for a purpose ("build etcd"), return what it printed; Problem when it fails.

    finish_when_interrupted is for dpkg, which must not be stopped half-way: the interrupt counts afterwards.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    ticker = Ticker(purpose)
    with log.open("wb") as sink:
        child = subprocess.Popen(
            [str(argument) for argument in arguments],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=None if environ is None else dict(environ),
            start_new_session=True,
            preexec_fn=None if finish_when_interrupted else _die_with_parent(),  # noqa: PLW1509 - no threads
        )
        code = _attend(child, log, ticker, finish_when_interrupted)
    output = log.read_text(errors="replace")
    ticker.end("done" if code == 0 else "failed")
    if code != 0 and shutil.disk_usage(log.parent).free < FULL_BYTES:
        raise disk_full(f"while `{tool}` tried to {purpose}")  # then its last words are not in the log either
    if code != 0:
        raise explain_failure(tool, purpose, output, log)
    return output


def _attend(child: subprocess.Popen[bytes], log: Path, ticker: Ticker, finish_when_interrupted: bool) -> int:
    try:
        while child.poll() is None:
            ticker.tick(last_words(log))
            time.sleep(POLL_SECONDS)
    except BaseException:
        if finish_when_interrupted:
            say(f"  {ticker.what}: interrupted; waiting for dpkg, which must not be left half-way")
            child.wait()
        else:
            stop_group(child)
        raise
    return child.returncode


def stop_group(child: subprocess.Popen[bytes]) -> None:
    """End a child and everything it started."""
    for number, patience_seconds in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, GRACE_SECONDS)):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            break
        deadline = time.monotonic() + patience_seconds
        while _group_lives(child) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS / 2)
    child.wait()


def _group_lives(child: subprocess.Popen[bytes]) -> bool:
    child.poll()
    try:
        os.killpg(child.pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def last_words(log: Path) -> str:
    """Return the last line a running child has printed."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 400))
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _die_with_parent() -> Callable[[], None]:
    """Have the kernel end the child when this process is killed outright; prctl is found before the fork."""
    library = ctypes.CDLL(None)
    return lambda: library.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def answer_of(arguments: Sequence[str | Path], environ: Mapping[str, str] | None = None) -> str | None:
    """Ask a program something short; None when it cannot be started, is killed or does not answer in time."""
    try:
        done = subprocess.run(
            [str(argument) for argument in arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=30,
            check=False,
            cwd="/",
            env=None if environ is None else dict(environ),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode < 0 else (done.stdout + b"\n" + done.stderr).decode(errors="replace")
