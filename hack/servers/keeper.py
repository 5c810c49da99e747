"""Keeps one server: starts it, and ends it when whoever asked for it is gone.

Runs as a process of its own between the starter and the server, from the standard library alone. The
starter holds the other end of this process's standard input; when the starter ends, however it ends (kill
-9 included), the kernel closes that end and the server is stopped. Should this process itself be killed,
the kernel kills the server (PR_SET_PDEATHSIG).

    keeper.py PARENT_PID GRACE_SECONDS LOG COMMAND [ARGUMENT ...]

It writes the server's process id to standard output. On standard input: `K` kills the server at once; the
end of the input stops it with SIGTERM, and SIGKILL after GRACE_SECONDS. Its exit status is the server's
(128 + n for signal n).
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

KILL = b"K"
PR_SET_PDEATHSIG = 1
NOT_STARTED = 127
_ORDERS = 0  # the file descriptor of standard input


class _Wakeups:
    """Turns signals into something `select` sees, and remembers whether one of them asks to stop."""

    def __init__(self) -> None:
        self.stop_asked = False
        self.readable, writable = os.pipe()
        os.set_blocking(self.readable, False)
        os.set_blocking(writable, False)
        signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._ask_to_stop)

    def _ask_to_stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stop_asked = True

    def wait(self, timeout_seconds: float) -> bool:
        """Wait for a signal, an order or the timeout; true when the starter has an order."""
        ready, _, _ = select.select([_ORDERS, self.readable], [], [], timeout_seconds)
        with contextlib.suppress(BlockingIOError):
            os.read(self.readable, 512)
        return _ORDERS in ready


def _start(command: list[str], log: Path) -> "subprocess.Popen[bytes]":
    libc = ctypes.CDLL(None)
    keeper_pid = os.getpid()

    def die_with_the_keeper() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper_pid:  # the keeper died before the line above
            os._exit(NOT_STARTED)

    with log.open("ab", buffering=0) as output:
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=die_with_the_keeper,  # noqa: PLW1509 - this process has one thread
            )
        except OSError as error:
            output.write(f"{command[0]} could not be executed: {error.strerror}.\n".encode())
            sys.exit(NOT_STARTED)


def _signal_group(server: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.pid, number)


def _stop(server: "subprocess.Popen[bytes]", grace_seconds: float) -> None:
    _signal_group(server, signal.SIGTERM)
    deadline = time.monotonic() + grace_seconds
    while server.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)


def _keep(server: "subprocess.Popen[bytes]", wakeups: _Wakeups, parent_pid: int, grace_seconds: float) -> None:
    while server.poll() is None:
        if wakeups.wait(1.0):
            if os.read(_ORDERS, 1) != KILL:
                _stop(server, grace_seconds)
            return
        # A child that the starter forked may hold its end of the pipe open; then only the parent's id tells.
        if wakeups.stop_asked or os.getppid() != parent_pid:
            _stop(server, grace_seconds)
            return


def main(arguments: list[str]) -> int:
    """Start the server, keep it until it ends or nobody wants it any more, and leave nothing of it behind."""
    parent_pid, grace_seconds, log, *command = arguments
    wakeups = _Wakeups()
    server = _start(command, Path(log))
    # Closed at once, so that a reader of the starter's output never waits for this process.
    os.write(1, f"{server.pid}\n".encode())
    os.close(1)
    _keep(server, wakeups, int(parent_pid), float(grace_seconds))
    _signal_group(server, signal.SIGKILL)
    status = server.wait()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
