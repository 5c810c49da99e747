"""A server process as its starter sees it: started through a keeper, with a log, until stopped or killed."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from servers import environments, keeper
from servers.problems import PortTaken, ServerProblem

LOG_LINES_SHOWN = 12
# The keeper kills the server when its grace is over, so this only covers a machine that is very busy.
_KEEPER_TIMEOUT_SECONDS = 30.0
_PORT_TAKEN = "address already in use"


class Process:
    """One running server and its keeper."""

    def __init__(
        self, name: str, keeper_process: "subprocess.Popen[bytes]", pid: int, log: Path, log_start: int
    ) -> None:
        self.name = name
        self.pid = pid
        self.log = log
        self._keeper = keeper_process
        self._log_start = log_start

    @property
    def is_running(self) -> bool:
        """Whether the server is alive; its keeper ends with it."""
        return self._keeper.poll() is None

    def stop(self) -> None:
        """Stop the server as an administrator would, and wait until it is gone; twice does no harm."""
        self._end(b"")

    def kill(self) -> None:
        """Kill the server as a power cut would, and wait until it is gone."""
        self._end(keeper.KILL)

    def listens_on(self, port: int) -> bool:
        """Whether it is this server, and no other, that listens on `port`."""
        try:
            started = psutil.Process(self.pid)
            family = [started, *started.children(recursive=True)]
            sockets = [socket for member in family for socket in member.net_connections("tcp")]
        except psutil.Error:
            return False
        return any(socket.status == psutil.CONN_LISTEN and socket.laddr[1] == port for socket in sockets)

    def wait_until_ready(self, answers: Callable[[], bool], *, port: int, timeout_seconds: float = 120.0) -> None:
        """Return once the server listens on `port` and `answers`; otherwise stop it and say why not."""
        try:
            self._wait(answers, port, timeout_seconds)
        except BaseException:
            self.stop()
            raise

    def _wait(self, answers: Callable[[], bool], port: int, timeout_seconds: float) -> None:
        deadline = time.monotonic() + timeout_seconds
        while not (self.listens_on(port) and _answers(answers)):
            if not self.is_running:
                raise self._ended_too_early()
            if time.monotonic() > deadline:
                raise ServerProblem(f"{self.name} was not ready after {timeout_seconds:g} s; {self._log_lines()}")
            time.sleep(0.03)

    def log_text(self) -> str:
        """Everything this process has written since it was started."""
        with self.log.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode(errors="replace")

    def _end(self, order: bytes) -> None:
        assert self._keeper.stdin is not None  # noqa: S101 - it was opened as a pipe
        if not self._keeper.stdin.closed:
            try:
                self._keeper.stdin.write(order)
            except BrokenPipeError:
                pass  # the server, and with it the keeper, has ended already
            finally:
                self._keeper.stdin.close()
        try:
            self._keeper.wait(_KEEPER_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired as error:
            stuck = f"{self.name} (process {self.pid}) goes on {_KEEPER_TIMEOUT_SECONDS:g} s after its stop"
            raise ServerProblem(f"{stuck}; end it by hand, and see its log {self.log}.") from error

    def _ended_too_early(self) -> ServerProblem:
        problem = PortTaken if _PORT_TAKEN in self.log_text().lower() else ServerProblem
        status = self._keeper.returncode
        return problem(f"{self.name} ended with status {status} before it was ready; {self._log_lines()}")

    def _log_lines(self) -> str:
        lines = self.log_text().rstrip().splitlines()[-LOG_LINES_SHOWN:]
        if not lines:
            return f"its log {self.log} is empty."
        return "\n    ".join([f"the last lines of its log {self.log} are:", *lines])


def start(
    name: str,
    program: Path,
    options: Sequence[str],
    log: Path,
    *,
    grace_seconds: float = 10.0,
    environment: Mapping[str, str] | None = None,
) -> Process:
    """Start `program` so that it ends with this process at the latest; its output is appended to `log`.

    `environment` is what it gets beyond the developer's own.
    """
    keeper_command = (
        sys.executable,
        "-I",
        "-S",
        keeper.__file__,
        str(os.getpid()),
        str(grace_seconds),
        str(log),
    )
    with log.open("ab") as output:
        log_start = output.tell()
        keeper_process = subprocess.Popen(
            [*keeper_command, str(program), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            bufsize=0,
            env=environments.clean(**(environment or {})),
            start_new_session=True,  # Ctrl-C at a terminal is the starter's to handle
        )
    assert keeper_process.stdout is not None  # noqa: S101 - it was opened as a pipe
    with keeper_process.stdout as told:
        pid = told.read()  # to its end: the keeper closes it after one line, or dies
    process = Process(name, keeper_process, int(pid or 0), log, log_start)
    if not pid:
        process.stop()
        raise process._ended_too_early()  # noqa: SLF001 - the same module
    return process


def _answers(probe: Callable[[], bool]) -> bool:
    try:
        return probe()
    except OSError:
        return False
