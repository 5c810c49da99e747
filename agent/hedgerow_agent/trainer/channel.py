"""The trainer's end of the pipes: lines in through a thread, lines out on a descriptor of their own.

When stdin ends the agent is gone, and so is the trainer, at once: an orphan must not go on training.
"""

import os
import queue
import sys
import threading

from pydantic import ValidationError

from hedgerow_agent.trainer.protocol import LINE_LIMIT_BYTES, TO_TRAINER, Error, Told, as_line, shortened
from hedgerow_plans.protocol.messages import Message

EXIT_ORPHANED = 0
EXIT_NOT_UNDERSTOOD = 2


class Channel:
    """What the agent says, in order, and how to answer."""

    def __init__(self) -> None:
        # Nothing that prints may ever get between the lines: stdout becomes stderr for everybody else.
        self._out = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)
        self._lines: queue.SimpleQueue[Told] = queue.SimpleQueue()
        threading.Thread(target=self._listen, name="listen", daemon=True).start()

    def say(self, message: Message) -> None:
        """Send one message; an agent that no longer listens ends the trainer."""
        try:
            self._out.write(as_line(message))
        except BrokenPipeError:
            os._exit(EXIT_ORPHANED)

    def wait(self) -> Told:
        """Return the next message, however long it takes."""
        return self._lines.get()

    def heard(self) -> list[Told]:
        """Return what has come since the last time, without waiting."""
        messages = []
        while not self._lines.empty():
            messages.append(self._lines.get())
        return messages

    def _listen(self) -> None:
        while line := sys.stdin.buffer.readline(LINE_LIMIT_BYTES):
            try:
                self._lines.put(TO_TRAINER.validate_json(line))
            except ValidationError as error:
                self.say(Error(message=shortened(f"The trainer does not understand its agent: {error}")))
                os._exit(EXIT_NOT_UNDERSTOOD)
        os._exit(EXIT_ORPHANED)
