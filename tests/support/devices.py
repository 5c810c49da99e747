"""A device and everything around it for tests: its files, its real agent process, and an operator's end of the wire."""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from safetensors.numpy import save

from hedgerow_agent.core.executor import Executor
from hedgerow_plans import codec
from hedgerow_plans.methods.catalogue import Method
from hedgerow_plans.methods.lora import Lora
from hedgerow_plans.methods.selection import Full
from hedgerow_plans.plan import Program
from hedgerow_plans.program import DeviceCosts, ProgramRequest, build_program
from hedgerow_plans.protocol.envelope import Header, payload_text, seal
from hedgerow_plans.protocol.keys import generate_private_key, key_id, public_key_text
from hedgerow_plans.protocol.messages import Assignment, Desired, Phase, ProgramReference, Reported, State, Telemetry
from hedgerow_plans.protocol.messages import WeightsReference as Weights
from hedgerow_plans.protocol.parts import split
from hedgerow_plans.protocol.topics import Channel, device_topic, program_topic
from hedgerow_plans.training.optimizers import Sgd
from sampledata.images import load_digits
from support.eventually import eventually

FLEET = "test"
BATCH_SIZE = 32
STEPS_PER_EPOCH = 39
"""1797 digits: 70 per cent of them are 1259 rows, and 39 batches of 32."""


@cache
def small_program(method: Method | None = None) -> Program:
    """Return a program for a small perceptron with several rungs."""
    request = ProgramRequest(
        model="mlp",
        method=method or Lora(rank=4),
        optimizer=Sgd(momentum=0.9),
        batch_size=BATCH_SIZE,
        device_class="bench",
        costs=DeviceCosts(flops_per_second=10**9, picojoules_per_flop=25_000),
        budget_bytes=1 << 24,
    )
    program = build_program(request)
    assert isinstance(program, Program), program
    return program


@cache
def digits() -> tuple[np.ndarray[Any, np.dtype[np.float32]], np.ndarray[Any, np.dtype[np.int32]]]:
    """Return the handwritten digits as images between 0 and 1, and their labels."""
    images = load_digits()
    return images.x, images.y


@cache
def base_weights() -> bytes:
    """Return a base model that knows the clean digits, made by our own core."""
    x, y = digits()
    executor = Executor(small_program(Full()), {}, seed=1)
    order = np.random.default_rng(0).permutation(len(x))
    for step in range(150):
        rows = order[np.arange(step * BATCH_SIZE, (step + 1) * BATCH_SIZE) % len(order)]
        executor.step(x, y, 0.05, rows)
    return save(executor.delta())


@dataclass
class Device:
    """The files of one device, and the key of the operator it trusts."""

    folder: Path
    name: str
    port: int
    key: Ed25519PrivateKey = field(default_factory=generate_private_key)

    @property
    def config(self) -> Path:
        return self.folder / "agent.toml"

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def probe(self) -> Path:
        return self.folder / "probe.npz"

    def write_files(self, *, more: str = "", retry_seconds: float = 0.1) -> None:
        """Write configuration, base model and drifted data."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "models").mkdir(exist_ok=True)
        (self.folder / "models" / "base.safetensors").write_bytes(base_weights())
        x, y = digits()
        drifted = np.ascontiguousarray(np.rot90(x, axes=(2, 3)))
        np.savez(self.folder / "digits.npz", x=drifted, y=y)
        np.savez(self.probe, x=drifted[:200], y=y[:200])
        public = self.key.public_key()
        self.config.write_text(
            f"""
fleet = "{FLEET}"
device = "{self.name}"
class = "bench"
labels = {{ site = "north" }}
[broker]
host = "127.0.0.1"
port = {self.port}
first_retry_seconds = {retry_seconds}
longest_retry_seconds = 0.5
[keys]
trusted = {{ {key_id(public)} = "{public_key_text(public)}" }}
[storage]
folder = "store"
[models]
folder = "models"
[datasets]
digits = "digits.npz"
[timing]
telemetry_seconds = 0.5
progress_seconds = 0.1
look_again_seconds = 0.3
{more}
"""
        )


def limits_toml(rest_seconds: float = 0.0, hysteresis_batches: int = 3) -> str:
    """Return the limits section of a device that takes its time."""
    return f"[limits]\nrest_between_steps_seconds = {rest_seconds}\nhysteresis_batches = {hysteresis_batches}\n"


class AgentProcess:
    """A real `hedgerow-agent run`."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.log = device.folder / "agent.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "hedgerow_agent", "run", "--config", str(self.device.config)]
            self._process = subprocess.Popen(command, stderr=log, stdout=log)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Kill -9, and wait until it is gone."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(20)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def trainer_pid(self) -> int | None:
        """The process id of its trainer, if there is one."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return int(children[0]) if children else None


@contextmanager
def running(device: Device) -> Iterator[AgentProcess]:
    """Run the agent of a device while the context lasts, and show its log when something fails."""
    agent = AgentProcess(device)
    agent.start()
    try:
        yield agent
    except BaseException:
        sys.stderr.write(agent.log.read_text()[-4000:])
        raise
    finally:
        if agent.is_running:
            agent.kill()


class OperatorEnd:
    """What an operator would do for one device: sign, publish, and listen."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.sequence = 0
        self.parts: list[bytes] = []  # of the newest program
        self.states: list[State] = []
        self.reports: list[Reported] = []
        self.telemetry: list[Telemetry] = []
        self._client = Client(
            CallbackAPIVersion.VERSION2,
            client_id=f"operator-{uuid.uuid4().hex[:8]}",
            protocol=MQTTProtocolVersion.MQTTv5,
        )
        self._ready = threading.Event()
        self._client.on_message = self._hear
        self._client.on_connect = lambda client, *_: client.subscribe(
            [(device_topic(FLEET, device.name, channel), 1) for channel in Channel if channel != Channel.DESIRED]
        )
        self._client.on_subscribe = lambda *_: self._ready.set()

    def __enter__(self) -> "OperatorEnd":
        self._client.connect("127.0.0.1", self.device.port)
        self._client.loop_start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def publish_program(self, program: Program) -> ProgramReference:
        reference, self.parts = split(codec.encode(program))
        for number, part in enumerate(self.parts):
            self.publish(program_topic(FLEET, reference.digest, number), part)
        return reference

    def publish(self, topic: str, payload: bytes) -> None:
        self._client.publish(topic, payload, qos=1, retain=True).wait_for_publish(10)

    def publish_desired(self, payload: bytes) -> None:
        self.publish(device_topic(FLEET, self.device.name, Channel.DESIRED), payload)

    def seal(self, desired: Desired, key: Ed25519PrivateKey | None = None) -> bytes:
        header = Header(FLEET, self.device.name, self.sequence)
        return seal(key or self.device.key, header, payload_text(desired))

    def desire(self, desired: Desired) -> bytes:
        """Sign and publish the next document and return its envelope."""
        self.sequence += 1
        sealed = self.seal(desired)
        self.publish_desired(sealed)
        return sealed

    @property
    def reported(self) -> Reported | None:
        return self.reports[-1] if self.reports else None

    def wait_for(
        self, condition: Callable[[Reported], object], expectation: str, timeout_seconds: float = 30.0
    ) -> Reported:
        """Wait until the newest report meets a condition."""

        def look() -> Reported | None:
            newest = self.reported
            return newest if newest is not None and condition(newest) else None

        try:
            found = eventually(look, expectation, timeout_seconds=timeout_seconds, pause_seconds=0.02)
        except AssertionError as error:
            raise AssertionError(f"{error} The newest report: {self.reported!r}") from None
        assert found is not None
        return found

    def wait_for_phase(self, phase: Phase, timeout_seconds: float = 30.0) -> Reported:
        return self.wait_for(lambda report: report.phase is phase, f"phase {phase}", timeout_seconds)

    def _hear(self, _client: Client, _data: object, message: MQTTMessage) -> None:
        channel = message.topic.rpartition("/")[2]
        if channel == Channel.STATE:
            self.states.append(State.model_validate_json(message.payload))
        elif channel == Channel.REPORTED:
            self.reports.append(Reported.model_validate_json(message.payload))
        elif channel == Channel.TELEMETRY:
            self.telemetry.append(Telemetry.model_validate_json(message.payload))


def assignment(reference: ProgramReference, **changes: object) -> Assignment:
    """Return a small job for the drifted digits."""
    values: dict[str, object] = {
        "job_uid": "3f9c02ab-0000-4000-8000-000000000001",
        "job_name": "digits-drift",
        "generation": 1,
        "program": reference,
        "weights": Weights(uri="file:base.safetensors", sha256=hashlib.sha256(base_weights()).hexdigest()),
        "dataset": "digits",
        "epochs": 4,
        "seed": 7,
        "learning_rate": "0.02",
        "checkpoint_every_steps": 20,
        "checkpoints_kept": 100,
    }
    return Assignment.model_validate(values | changes)


def predict(device: Device) -> dict[str, Any]:
    """Return what `hedgerow-agent predict` prints for the probe set."""
    command = [sys.executable, "-m", "hedgerow_agent", "predict", "--config", str(device.config)]
    done = subprocess.run([*command, "--input", str(device.probe), "-o", "json"], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def is_alive(pid: int) -> bool:
    """Whether a process runs, zombies not counted."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def kill_process(pid: int) -> None:
    """Kill -9 a process that may just have ended by itself."""
    try:
        os.kill(pid, 9)
    except ProcessLookupError:
        time.sleep(0)
