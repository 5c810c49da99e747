"""A device that speaks real MQTT and verifies what it obeys, but trains nothing: it says what a test tells it to."""

import threading
from collections.abc import Mapping
from typing import Any, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from hedgerow_plans.plan import KERNEL_TABLE, PROGRAM_SCHEMA
from hedgerow_plans.protocol.envelope import Accepted, Opened, open_envelope
from hedgerow_plans.protocol.messages import Assignment, Desired, Message, ProgramReference, Reported, State, Telemetry
from hedgerow_plans.protocol.parts import join
from hedgerow_plans.protocol.refusals import Refused
from hedgerow_plans.protocol.topics import Channel, device_topic, program_topic


class FakeDevice:
    """One device: a connection, what it was told, and every refusal."""

    def __init__(self, fleet: str, name: str, port: int, trusted: Mapping[str, Ed25519PublicKey]) -> None:
        self.fleet, self.name = fleet, name
        self.desired: Desired | None = None
        self.payload = ""  # of the newest envelope that was accepted
        self.desired_bytes: bytes | None = None  # b"" once the topic was cleared
        self.sequences: list[int] = []
        self.refusals: list[Refused] = []
        self.retained: dict[str, bytes] = {}
        self._accepted: Accepted | None = None
        self._trusted = trusted
        self._port = port
        self._connected = threading.Event()
        self._client = Client(
            CallbackAPIVersion.VERSION2, client_id=f"{fleet}-{name}", protocol=MQTTProtocolVersion.MQTTv311
        )
        self._client.reconnect_delay_set(1, 1)
        self._client.on_connect = self._on_connect
        self._client.on_message = self._on_message

    def connect(self, epoch: int = 1) -> Self:
        """Connect with a last will, and listen to what the operator wants."""
        lost = State(state="lost", epoch=epoch).model_dump_json()
        self._client.will_set(self._topic(Channel.STATE), lost, qos=1, retain=True)
        self._client.connect("127.0.0.1", self._port)
        self._client.loop_start()
        assert self._connected.wait(10)
        return self

    def disconnect(self) -> None:
        """Leave properly: the will is not published."""
        self._client.disconnect()
        self._client.loop_stop()

    def birth(self, device_class: str, epoch: int = 1, **changes: Any) -> None:
        """Say what it is."""
        values: dict[str, Any] = {
            "state": "online",
            "device_class": device_class,
            "labels": {"site": "north"},
            "agent_version": "0.1.0",
            "program_schema": PROGRAM_SCHEMA,
            "kernel_table": KERNEL_TABLE,
            "backend": "numpy",
        }
        self._say(Channel.STATE, State(epoch=epoch, **(values | changes)))

    def report(self, **values: Any) -> None:
        """Publish its twin; sequence, job and generation are those of what it was told."""
        assignment = self.desired.assignment if self.desired else None
        defaults: dict[str, Any] = {
            "epoch": 1,
            "observed_sequence": self.sequences[-1] if self.sequences else 0,
            "job_uid": assignment.job_uid if assignment else None,
            "generation": assignment.generation if assignment else None,
            "reason": "Testing",
        }
        self._say(Channel.REPORTED, Reported(**(defaults | values)))

    def sample(self, **values: Any) -> None:
        """Publish telemetry."""
        self._client.publish(self._topic(Channel.TELEMETRY), Telemetry(**values).model_dump_json()).wait_for_publish(5)

    def say_raw(self, channel: Channel, payload: bytes) -> None:
        """Publish whatever bytes."""
        self._client.publish(self._topic(channel), payload, qos=1).wait_for_publish(5)

    @property
    def assignment(self) -> Assignment | None:
        """What it should work on."""
        return self.desired.assignment if self.desired else None

    def program(self, reference: ProgramReference) -> bytes | None:
        """Return the encoded program if all its parts have arrived."""
        topics = [program_topic(self.fleet, reference.digest, number) for number in range(reference.parts)]
        if any(not self.retained.get(topic) for topic in topics):
            return None
        joined = join(reference, [self.retained[topic] for topic in topics])
        assert isinstance(joined, bytes), joined
        return joined

    def forget(self) -> None:
        """Forget what arrived, but not what was accepted."""
        self.retained.clear()
        self.desired_bytes = None

    def _topic(self, channel: Channel) -> str:
        return device_topic(self.fleet, self.name, channel)

    def _say(self, channel: Channel, message: Message) -> None:
        self._client.publish(self._topic(channel), message.model_dump_json(), qos=1, retain=True).wait_for_publish(5)

    def _on_connect(self, client: Client, *_: Any) -> None:
        programs = program_topic(self.fleet, "+", 0).removesuffix("0") + "+"
        client.subscribe([(self._topic(Channel.DESIRED), 1), (programs, 1)])
        self._connected.set()

    def _on_message(self, _: Client, __: Any, message: MQTTMessage) -> None:
        payload = bytes(message.payload)
        self.retained[message.topic] = payload
        if message.topic != self._topic(Channel.DESIRED):
            return
        self.desired_bytes = payload
        if payload:
            self._open(payload)

    def _open(self, payload: bytes) -> None:
        opened = open_envelope(payload, self._trusted, self.fleet, self.name, last=self._accepted, now_seconds=None)
        if not isinstance(opened, Opened):
            self.refusals.append(opened)
            return
        self._accepted = opened.accepted
        self.sequences.append(opened.header.sequence)
        self.payload = opened.payload
        self.desired = Desired.model_validate_json(opened.payload)
