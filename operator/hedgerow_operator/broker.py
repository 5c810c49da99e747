"""The MQTT broker: the only module that imports paho.

What should be retained is handed over once and kept here; after every connection all of it is published again, because
a broker may have lost its store. What it still has under topics that are ours, from before we were started, is noted so
that it can be cleared when it is no longer true. Each connection is a new client with a clean session, so that nothing
old that the library had queued can overtake what is true now. Speaks 3.1.1, which every broker understands.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paho.mqtt.client import Client, ConnectFlags, DisconnectFlags, MQTTMessage, topic_matches_sub
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from hedgerow_operator.settings import BrokerSettings

MAX_PAYLOAD_BYTES = 1024 * 1024
"""Of what we read; anything longer is dropped before it is looked at."""

KEEPALIVE_SECONDS = 15
CONNECT_TIMEOUT_SECONDS = 5.0
FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 30.0

Receive = Callable[[str, bytes], None]
Count = Callable[[str], None]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Topics:
    """What to subscribe to: what others say, and what only we may say."""

    heard: tuple[str, ...]
    owned: tuple[str, ...] = ()


class Broker:
    """A connection that comes back by itself, and what should be retained at its other end."""

    def __init__(self, settings: BrokerSettings, topics: Topics, receive: Receive, count: Count) -> None:
        self._settings = settings
        self._topics = topics
        self._found: set[str] = set()  # retained under our topics before we published anything
        self._receive = receive
        self._count = count
        self._retained: dict[str, bytes] = {}
        self._to_clear: set[str] = set()
        self._client: Client | None = None  # only while connected
        self._task: asyncio.Task[None] | None = None
        self.connections = 0

    @property
    def is_connected(self) -> bool:
        """Whether the broker answers at this moment."""
        return self._client is not None

    def tasks(self) -> list[asyncio.Task[None]]:
        """Return what must be running from start to stop."""
        return [self._task] if self._task else []

    def start(self) -> None:
        """Connect, and stay connected until stopped."""
        self._task = asyncio.create_task(self._stay_connected(), name="broker")

    async def stop(self) -> None:
        """Say goodbye; what is retained stays, it is still true."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def hold(self, topic: str, payload: bytes) -> None:
        """Keep a message retained at the broker, through every reconnection."""
        if self._retained.get(topic) == payload:
            return
        self._to_clear.discard(topic)
        self._retained[topic] = payload
        self._publish(topic, payload)

    def clear(self, topic: str) -> None:
        """Take a retained message away, now or as soon as there is a connection."""
        self._retained.pop(topic, None)
        self._found.discard(topic)
        if not self._publish(topic, b""):
            self._to_clear.add(topic)

    def ask(self, topic: str) -> None:
        """Have what is retained under a topic that we listen to delivered once more."""
        if self._client is not None:  # else the next connection brings everything
            self._client.subscribe(topic, 1)
            self._client.unsubscribe(topic)  # of this filter only; what is under way still arrives

    def holds(self, topic: str) -> bool:
        """Whether a message is kept retained under a topic."""
        return topic in self._retained

    def held(self, prefix: str) -> list[str]:
        """Return the topics below a prefix under which messages are kept, by us or from before."""
        return [topic for topic in self._found.union(self._retained) if topic.startswith(prefix)]

    async def _stay_connected(self) -> None:
        delay_seconds = FIRST_DELAY_SECONDS
        while True:
            before = self.connections
            reason = await self._one_connection()
            delay_seconds = FIRST_DELAY_SECONDS if self.connections > before else delay_seconds * 2
            delay_seconds = min(delay_seconds, LONGEST_DELAY_SECONDS)
            where = f"{self._settings.host}:{self._settings.port}"
            _log.warning(
                "The broker at %s is not connected (%s); trying again in %.1f s.", where, reason, delay_seconds
            )
            await asyncio.sleep(delay_seconds * random.uniform(0.75, 1.25))

    async def _one_connection(self) -> str:
        """Be connected once, from CONNECT to the end, and return why it ended."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[str] = loop.create_future()
        client = self._new_client(loop, ended)
        try:
            await asyncio.to_thread(client.connect, self._settings.host, self._settings.port, KEEPALIVE_SECONDS)
            client.loop_start()
            return await ended
        except (OSError, ValueError) as problem:
            return str(problem)
        finally:
            self._client = None
            client.disconnect()
            await asyncio.to_thread(client.loop_stop)

    def _new_client(self, loop: asyncio.AbstractEventLoop, ended: asyncio.Future[str]) -> Client:
        settings = self._settings
        client = Client(
            CallbackAPIVersion.VERSION2,
            client_id=settings.client_id,
            clean_session=True,
            protocol=MQTTProtocolVersion.MQTTv311,
            reconnect_on_failure=False,
        )
        client.connect_timeout = CONNECT_TIMEOUT_SECONDS
        client.max_queued_messages_set(0)  # no limit: what is published is bounded by what is retained
        if settings.username is not None:
            client.username_pw_set(settings.username, settings.password)
        if settings.certificate_authority is not None:
            client.tls_set(ca_certs=str(settings.certificate_authority))

        self._listen(client, loop, ended)
        return client

    def _listen(self, client: Client, loop: asyncio.AbstractEventLoop, ended: asyncio.Future[str]) -> None:
        """Bring what the library's thread hears into the event loop."""

        def end(reason: str) -> None:
            if not ended.done():
                ended.set_result(reason)

        def on_connect(_: Client, __: Any, ___: ConnectFlags, code: ReasonCode, ____: Properties | None) -> None:
            if code.is_failure:
                _quietly(loop, end, f"it answered: {code}")
            else:
                _quietly(loop, self._connected, client)

        def on_disconnect(_: Client, __: Any, ___: DisconnectFlags, code: ReasonCode, ____: Properties | None) -> None:
            _quietly(loop, end, f"the connection ended: {code}")

        def on_message(_: Client, __: Any, message: MQTTMessage) -> None:
            if any(topic_matches_sub(owned, message.topic) for owned in self._topics.owned):
                if message.retain and message.payload:  # an echo of what we publish is not retained
                    _quietly(loop, self._found.add, message.topic)
            elif len(message.payload) <= MAX_PAYLOAD_BYTES:
                _quietly(loop, self._received, message.topic, bytes(message.payload))

        client.on_connect, client.on_disconnect, client.on_message = on_connect, on_disconnect, on_message

    def _connected(self, client: Client) -> None:
        self._client = client
        self.connections += 1
        _log.info("Connected to the broker at %s:%s.", self._settings.host, self._settings.port)
        for topic in self._to_clear:
            self._publish(topic, b"")
        self._to_clear.clear()
        for topic, payload in sorted(self._retained.items(), reverse=True):  # programs before who needs them
            self._publish(topic, payload)
        client.subscribe([(topic, 1) for topic in (*self._topics.heard, *self._topics.owned)])

    def _received(self, topic: str, payload: bytes) -> None:
        self._count("received")
        self._receive(topic, payload)

    def _publish(self, topic: str, payload: bytes) -> bool:
        if self._client is None:
            return False
        self._client.publish(topic, payload, qos=1, retain=True)
        self._count("published")
        return True


def _quietly(loop: asyncio.AbstractEventLoop, call: Callable[..., None], *arguments: object) -> None:
    """Hand over to the event loop, unless it has ended before the library's thread did."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(call, *arguments)
