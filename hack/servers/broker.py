"""A real MQTT broker on loopback, which a test may restart, kill, and rob of its store.

It is mosquitto wherever that can be had. The Go broker that stands in for it on other machines lets everybody
in and keeps everything in memory; what it cannot do, it says.
"""

import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from provision.find import locate_broker
from provision.sources import Binary
from servers import mosquitto, mqtt, ports, processes
from servers.mosquitto import Options
from servers.ports import LOOPBACK
from servers.problems import ServerProblem
from servers.processes import Process
from servers.saying import Say, quiet

_SAVING_TIMEOUT_SECONDS = 30.0


class Broker:
    """A broker on one port with one store, over as many processes as it takes."""

    def __init__(self, binary: Binary, folder: Path, port: int, options: Options) -> None:
        self.host = LOOPBACK
        self.port = port
        self.log = folder / f"{binary.name}.log"
        self.store = folder / "store"
        self._binary = binary
        self._arguments = self._configure(folder, options)
        self._process: Process | None = None

    @property
    def is_running(self) -> bool:
        """Whether the broker is alive."""
        return self._process is not None and self._process.is_running

    def start(self) -> None:
        """Start it on its port with its store, and wait until it answers a CONNECT."""
        self.store.mkdir(mode=0o700, exist_ok=True)
        self._process = processes.start(self._binary.name, self._binary.path, self._arguments, self.log)
        self._process.wait_until_ready(lambda: mqtt.answers(self.port), port=self.port)

    def stop(self) -> None:
        """Stop it; it saves its store."""
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        """Kill it; what it has not saved is lost."""
        if self._process is not None:
            self._process.kill()

    def restart(self) -> None:
        """Stop it and start it again on the same port with the same store."""
        self._need_mosquitto("keep its store over a restart")
        self.stop()
        self.start()

    def save(self) -> None:
        """Have it save its store now, and wait until it has."""
        self._need_mosquitto("save its store")
        if self._process is None or not self._process.is_running:
            raise ServerProblem(f"The broker on port {self.port} is not running, so it cannot save: start it.")
        before, deadline = self._saved(), time.monotonic() + _SAVING_TIMEOUT_SECONDS
        os.kill(self._process.pid, signal.SIGUSR1)
        while self._saved() == before:
            if time.monotonic() > deadline:
                raise ServerProblem(f"The broker has not saved after {_SAVING_TIMEOUT_SECONDS:g} s; see {self.log}.")
            time.sleep(0.01)

    def delete_store(self) -> None:
        """Delete everything it has saved: retained messages, sessions and their queues."""
        shutil.rmtree(self.store, ignore_errors=True)

    def _saved(self) -> int | None:
        # It renames a new file over the old one, which exists until then: the number is never the same.
        database = self.store / mosquitto.DATABASE
        return database.stat().st_ino if database.exists() else None

    def _configure(self, folder: Path, options: Options) -> list[str]:
        if self._binary.name == "mosquitto":
            return ["-c", str(mosquitto.write_configuration(folder, self.port, self.store, options))]
        if options != Options():
            self._need_mosquitto("check passwords, obey access rules or read further lines of configuration")
        nowhere = f"{LOOPBACK}:0"  # it insists on two more listeners
        return [f"-tcp={LOOPBACK}:{self.port}", f"-ws={nowhere}", f"-info={nowhere}"]

    def _need_mosquitto(self, purpose: str) -> None:
        if self._binary.name != "mosquitto":
            cannot = f"The broker {self._binary.path} cannot {purpose}"
            raise ServerProblem(f"{cannot}: install mosquitto 2 (`hack/setup servers mosquitto`).")


@contextmanager
def start(
    folder: Path, options: Options | None = None, *, port: int | None = None, say: Say = quiet
) -> Iterator[Broker]:
    """Run a broker in `folder` while the context lasts, on the port asked for or on any free one."""
    binary = locate_broker()
    say(f"Starting {binary.name}.")

    def launch(free_port: int) -> Broker:
        launched = Broker(binary, folder, free_port, options or Options())
        launched.start()
        return launched

    broker = ports.on_port(port, "the MQTT broker", launch)
    try:
        yield broker
    finally:
        broker.stop()
