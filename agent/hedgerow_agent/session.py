"""The MQTT connection: the only module that imports paho.

Every connection is a client of its own, because its last will carries its own epoch. MQTT 5 is tried first; a broker
that does not speak it is asked again in 3.1.1. After a loss the waiting time doubles, with jitter, so that a fleet does
not come back all at once. What is said while there is no connection is dropped here: whoever owns a topic says it again
when the connection stands.
"""

import logging
import random
import ssl
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from paho.mqtt.client import Client, ConnectFlags, DisconnectFlags, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from hedgerow_agent.config import Broker, Tls
from hedgerow_plans.protocol.messages import Message, State
from hedgerow_plans.protocol.topics import Channel, device_topic

PACKET_LIMIT_BYTES = 256 * 1024
"""Told to an MQTT 5 broker, which then sends nothing larger; the largest message we know has half of this."""

_CONNECT_TIMEOUT_SECONDS = 10.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Up:
    """A connection was accepted."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Down:
    """A connection was lost, or none could be made."""

    reason: str


@dataclass(frozen=True, slots=True)
class Received:
    """A message on a topic that was asked for."""

    topic: str
    payload: bytes


Delivery = Up | Down | Received


def wait_seconds(failures: int, first: float, longest: float, jitter: float) -> float:
    """Return how long to wait after so many failures in a row: doubling, at most `longest`, less up to a half."""
    return min(longest, first * 2.0 ** min(failures, 32)) * (1 - jitter / 2)


class Session:
    """Keeps this device connected, with birth, last will and subscriptions, until it is closed."""

    def __init__(
        self,
        broker: Broker,
        fleet: str,
        device: str,
        *,
        next_epoch: Callable[[], int],
        birth: Callable[[int], State],
        deliver: Callable[[Delivery], None],
    ) -> None:
        self._broker, self._fleet, self._device = broker, fleet, device
        self._next_epoch, self._birth, self._deliver = next_epoch, birth, deliver
        self._protocol = MQTTProtocolVersion.MQTTv5
        self._client: Client | None = None  # only while connected
        self._epoch = 0
        self._topics: frozenset[str] = frozenset()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._attempt: _Attempt | None = None
        self._thread = threading.Thread(target=self._stay_connected, name="session", daemon=True)

    def start(self) -> None:
        """Begin to connect."""
        self._thread.start()

    def say(self, channel: Channel, message: Message, *, keep: bool) -> None:
        """Publish on one of the device's own topics; `keep` means retained and at least once."""
        client = self._client
        if client is not None:
            topic = device_topic(self._fleet, self._device, channel)
            client.publish(topic, message.model_dump_json(), qos=1 if keep else 0, retain=keep)

    def want(self, topics: Iterable[str]) -> None:
        """Be subscribed to exactly these topics, besides the device's own."""
        with self._lock:
            before, self._topics = self._topics, frozenset(topics)
            gone, new = sorted(before - self._topics), sorted(self._topics - before)
            if self._client is not None and gone:
                self._client.unsubscribe(gone)
            if self._client is not None and new:
                self._client.subscribe([(topic, 1) for topic in new])

    def close(self, goodbye: State | None = None, timeout_seconds: float = 3.0) -> None:
        """Say goodbye and disconnect, so that the broker does not publish the last will."""
        self._closing.set()
        client = self._client
        if client is not None and goodbye is not None:
            farewell = goodbye.model_copy(update={"epoch": self._epoch}).model_dump_json()
            sent = client.publish(device_topic(self._fleet, self._device, Channel.STATE), farewell, qos=1, retain=True)
            try:
                sent.wait_for_publish(timeout_seconds)
            except (RuntimeError, ValueError):
                _log.info("The broker was gone before goodbye could be said.")
        if client is not None:
            client.disconnect()
        if self._attempt is not None:
            self._attempt.ended.set()
        self._thread.join(timeout_seconds)

    def _stay_connected(self) -> None:
        failures = 0
        while not self._closing.is_set():
            failures = 0 if self._connect_once() else failures + 1
            first, longest = self._broker.first_retry_seconds, self._broker.longest_retry_seconds
            self._closing.wait(wait_seconds(failures, first, longest, jitter=random.random()))

    def _connect_once(self) -> bool:
        """Connect, stay until the connection ends, and return whether the broker accepted it."""
        newest = self._protocol is MQTTProtocolVersion.MQTTv5
        where = f"{self._broker.host}:{self._broker.port}"
        try:
            attempt = self._attempt = _Attempt(self._next_epoch())
            client = self._make_client(attempt)
            limits = _limits() if newest else None
            client.connect(self._broker.host, self._broker.port, self._broker.keepalive_seconds, properties=limits)
        except (OSError, ValueError) as error:  # the network, a certificate that cannot be read, a full disk
            self._deliver(Down(f"{where} cannot be reached: {error}"))
            return False
        client.loop_start()
        if not attempt.answered.wait(_CONNECT_TIMEOUT_SECONDS):
            attempt.ended.set()
        if not self._closing.is_set():
            attempt.ended.wait()
        with self._lock:
            self._client = None
        client.disconnect()
        client.loop_stop()
        if not attempt.accepted:
            self._deliver(Down(f"{where} did not accept the connection: {attempt.refusal}"))
            self._protocol = MQTTProtocolVersion.MQTTv311 if newest else MQTTProtocolVersion.MQTTv5
        return attempt.accepted

    def _make_client(self, attempt: "_Attempt") -> Client:
        broker = self._broker
        client = Client(
            CallbackAPIVersion.VERSION2,
            client_id=broker.client_id or self._device,
            protocol=self._protocol,
            reconnect_on_failure=False,
        )
        client.connect_timeout = _CONNECT_TIMEOUT_SECONDS
        if broker.username is not None:
            client.username_pw_set(broker.username, broker.password)
        if broker.tls is not None:
            client.tls_set_context(_tls_context(broker.tls))
        will = State(state="lost", epoch=attempt.epoch).model_dump_json()
        client.will_set(device_topic(self._fleet, self._device, Channel.STATE), will, qos=1, retain=True)
        self._listen(client, attempt)
        return client

    def _listen(self, client: Client, attempt: "_Attempt") -> None:
        """Let the client's callbacks tell what becomes of the attempt."""

        def on_connect(
            one: Client, _data: object, _flags: ConnectFlags, code: ReasonCode, _properties: Properties | None
        ) -> None:
            if code.is_failure:
                attempt.refusal = str(code)
                attempt.ended.set()
            else:
                attempt.accepted = True
                self._begin(one, attempt.epoch)
            attempt.answered.set()

        def on_disconnect(
            _one: Client, _data: object, _flags: DisconnectFlags, code: ReasonCode, _properties: Properties | None
        ) -> None:
            if attempt.accepted and not self._closing.is_set():
                self._deliver(Down(f"the connection was lost: {code}"))
            attempt.ended.set()
            attempt.answered.set()

        def on_message(_one: Client, _data: object, message: MQTTMessage) -> None:
            self._deliver(Received(message.topic, bytes(message.payload)))

        client.on_connect, client.on_disconnect, client.on_message = on_connect, on_disconnect, on_message

    def _begin(self, client: Client, epoch: int) -> None:
        """Say the birth, subscribe, and tell that the connection stands."""
        birth = self._birth(epoch).model_dump_json()
        client.publish(device_topic(self._fleet, self._device, Channel.STATE), birth, qos=1, retain=True)
        with self._lock:
            self._client, self._epoch = client, epoch
            own = device_topic(self._fleet, self._device, Channel.DESIRED)
            client.subscribe([(topic, 1) for topic in (own, *sorted(self._topics))])
        self._deliver(Up(epoch))


@dataclass(slots=True)
class _Attempt:
    """What becomes of one connection; written by paho's thread, awaited by ours."""

    epoch: int
    accepted: bool = False
    refusal: str = "it did not answer in time"
    answered: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)


def _tls_context(tls: Tls) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(tls.ca_file) if tls.ca_file else None)
    if tls.certificate_file is not None:
        context.load_cert_chain(tls.certificate_file, tls.key_file)
    return context


def _limits() -> Properties:
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.MaximumPacketSize = PACKET_LIMIT_BYTES
    return properties
