"""The trainer as a child process: started, told, listened to, and ended by force if it does not listen."""

import contextlib
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from hedgerow_agent.machine.events import TrainerExited, TrainerSaid
from hedgerow_agent.trainer.protocol import FROM_TRAINER, LINE_LIMIT_BYTES, Start, Stop, as_line
from hedgerow_plans.protocol.messages import Message

OOM_SCORE_ADJUSTMENT = 1000
"""The most there is; raising it needs no privilege."""

_log = logging.getLogger(__name__)


class TrainerProcess:
    """One trainer, from its start to its exit. Must be started by the main thread, whose death it follows."""

    def __init__(self, start: Start, deliver: Callable[[TrainerSaid | TrainerExited], None]) -> None:
        self._deliver = deliver
        self._process = subprocess.Popen(
            [sys.executable, "-m", "hedgerow_agent.trainer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )
        _offer_first_when_memory_is_short(self._process.pid)
        threading.Thread(target=self._listen, name="trainer", daemon=True).start()
        self.tell(start)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def tell(self, message: Message) -> None:
        """Send one message; a trainer that is gone says so by exiting."""
        stdin = self._process.stdin
        try:
            if stdin is not None:
                stdin.write(as_line(message))
                stdin.flush()
        except (BrokenPipeError, ValueError):
            _log.info("The trainer was gone before it could be told %s.", message)

    def stop(self, patience_seconds: float) -> None:
        """Ask it to end, and kill it if it has not after a while."""
        self.tell(Stop())
        killer = threading.Timer(patience_seconds, self._process.kill)
        killer.daemon = True
        killer.start()

    def close(self, patience_seconds: float) -> None:
        """End it and wait until it is gone."""
        self.tell(Stop())
        try:
            self._process.wait(patience_seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _listen(self) -> None:
        """Deliver every line, then the exit."""
        stdout = self._process.stdout
        if stdout is not None:
            self._read_lines(stdout)
        self._deliver(TrainerExited(self._process.wait()))
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # there was something left to tell it
                self._process.stdin.close()

    def _read_lines(self, stdout: IO[bytes]) -> None:
        with stdout:
            while line := stdout.readline(LINE_LIMIT_BYTES):
                try:
                    said = FROM_TRAINER.validate_json(line)
                except ValidationError as error:
                    _log.error("The trainer said something else than a message: %s", error.errors()[0]["msg"])
                    continue
                self._deliver(TrainerSaid(said))


def _offer_first_when_memory_is_short(pid: int) -> None:
    """Have the kernel take the trainer before the agent; told from outside, because it may not live long enough."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text(str(OOM_SCORE_ADJUSTMENT))
