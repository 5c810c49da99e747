"""A real MQTT broker: mosquitto on loopback, which a test may restart, kill, and rob of its store."""

import base64
import hashlib
import os
import secrets
import shutil
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from provision.find import locate
from servers import mqtt, ports, processes
from servers.ports import LOOPBACK
from servers.problems import ServerProblem
from servers.processes import Process
from servers.saying import Say, quiet

# What mosquitto_passwd uses itself: few enough for a broker that checks thousands of devices at once.
_PASSWORD_ITERATIONS = 101
_DATABASE = "mosquitto.db"
_SAVING_TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Options:
    """How a broker differs from the plainest one, which lets everybody in and saves when it stops."""

    passwords: Mapping[str, str] = field(default_factory=dict)  # by user; empty: everybody may come in
    access_rules: str = ""  # the text of an acl_file; empty: everybody who came in may do everything
    further_lines: tuple[str, ...] = ()


class Mosquitto:
    """A broker on one port with one store, over as many processes as it takes."""

    def __init__(self, folder: Path, port: int, options: Options) -> None:
        self.host = LOOPBACK
        self.port = port
        self.log = folder / "mosquitto.log"
        self.store = folder / "store"
        self._configuration = _write_configuration(folder, port, self.store, options)
        self._process: Process | None = None

    @property
    def is_running(self) -> bool:
        """Whether the broker is alive."""
        return self._process is not None and self._process.is_running

    def start(self) -> None:
        """Start it on its port with its store, and wait until it answers a CONNECT."""
        self.store.mkdir(mode=0o700, exist_ok=True)
        options = ["-c", str(self._configuration)]
        self._process = processes.start("mosquitto", locate("mosquitto").path, options, self.log)
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
        self.stop()
        self.start()

    def save(self) -> None:
        """Have it save its store now, and wait until it has."""
        if self._process is None or not self._process.is_running:
            raise ServerProblem(
                f"mosquitto on port {self.port} cannot save its store: it is not running; start it first."
            )
        before, deadline = self._saved(), time.monotonic() + _SAVING_TIMEOUT_SECONDS
        os.kill(self._process.pid, signal.SIGUSR1)
        while self._saved() == before:
            if time.monotonic() > deadline:
                raise ServerProblem(
                    f"mosquitto has not saved {self.store} in {_SAVING_TIMEOUT_SECONDS:g} s; see {self.log}."
                )
            time.sleep(0.01)

    def _saved(self) -> int | None:
        # It renames a new file over the old one, which exists until then: the number is never the same.
        database = self.store / _DATABASE
        return database.stat().st_ino if database.exists() else None

    def delete_store(self) -> None:
        """Delete everything it has saved: retained messages, sessions and their queues."""
        shutil.rmtree(self.store, ignore_errors=True)


@contextmanager
def start(
    folder: Path, options: Options | None = None, *, port: int | None = None, say: Say = quiet
) -> Iterator[Mosquitto]:
    """Run a broker in `folder` while the context lasts, on the port asked for or on any free one."""
    say("Starting mosquitto.")

    def launch(free_port: int) -> Mosquitto:
        launched = Mosquitto(folder, free_port, options or Options())
        launched.start()
        return launched

    broker = ports.on_port(port, "mosquitto", launch)
    try:
        yield broker
    finally:
        broker.stop()


def _write_configuration(folder: Path, port: int, store: Path, options: Options) -> Path:
    lines = [
        f"listener {port} {LOOPBACK}",
        f"allow_anonymous {_word(not options.passwords)}",
        "persistence true",
        f"persistence_location {store}/",
        f"persistence_file {_DATABASE}",
        "autosave_interval 0",  # only when it stops or is told to: what a killed one loses is no accident
        "log_dest stderr",
    ]
    if os.geteuid() == 0:
        lines.append("user root")  # else it becomes `mosquitto`, who may read nothing in a temporary folder
    if options.passwords:
        lines.append(
            f"password_file {_write_private(folder / 'passwords', _password_lines(options.passwords))}"
        )
    if options.access_rules:
        lines.append(f"acl_file {_write_private(folder / 'access-rules', options.access_rules)}")
    return _write_private(folder / "mosquitto.conf", "\n".join([*lines, *options.further_lines, ""]))


def _password_lines(passwords: Mapping[str, str]) -> str:
    return "".join(f"{user}:{_hash(password)}\n" for user, password in passwords.items())


def _hash(password: str) -> str:
    salt = secrets.token_bytes(12)
    digest = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, _PASSWORD_ITERATIONS)
    encoded_salt, encoded_digest = (base64.b64encode(part).decode() for part in (salt, digest))
    return f"$7${_PASSWORD_ITERATIONS}${encoded_salt}${encoded_digest}"


def _write_private(path: Path, text: str) -> Path:
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def _word(value: bool) -> str:
    return "true" if value else "false"
