"""Everything that devices ever report, collected from the broker while a test breaks things."""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion
from pydantic import ValidationError

from demo.cast import FLEET
from hedgerow_plans.protocol import topics
from hedgerow_plans.protocol.messages import Reported
from hedgerow_plans.protocol.topics import Channel, DeviceTopic


@dataclass(slots=True)
class Announced:
    """Checkpoints that devices announced, as (device, job uid, id) -> the sha256s that were said."""

    checkpoints: dict[tuple[str, str, str], set[str]] = field(default_factory=dict)

    def hear(self, topic: str, payload: bytes) -> None:
        """Take in one message."""
        parsed = topics.parse(topic)
        if not isinstance(parsed, DeviceTopic) or parsed.channel is not Channel.REPORTED:
            return
        with suppress(ValidationError):  # an empty payload clears the topic
            reported = Reported.model_validate_json(payload)
            for checkpoint in reported.checkpoints:
                key = (parsed.device, reported.job_uid or "", checkpoint.id)
                self.checkpoints.setdefault(key, set()).add(checkpoint.sha256)


def listen(host: str, port: int) -> tuple[Client, Announced]:
    """Listen on the broker, over its restarts, until the client is stopped."""
    announced = Announced()
    client = Client(CallbackAPIVersion.VERSION2)
    client.reconnect_delay_set(min_delay=1, max_delay=1)

    def subscribe(joined: Client, *_: Any) -> None:
        joined.subscribe(topics.device_topic(FLEET, "+", Channel.REPORTED), qos=1)

    def hear(_client: Client, _data: Any, message: MQTTMessage) -> None:
        announced.hear(message.topic, bytes(message.payload))

    client.on_connect = subscribe
    client.on_message = hear
    client.connect(host, port)
    client.loop_start()
    return client, announced
