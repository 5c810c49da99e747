"""What the devices say about themselves on the broker: the retained twin of each."""

import time
from collections.abc import Collection
from typing import Any

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion

from demo.cast import FLEET
from hedgerow_plans.protocol import topics
from hedgerow_plans.protocol.messages import Reported
from hedgerow_plans.protocol.topics import Channel
from servers.broker import Broker
from servers.problems import ServerProblem

TIMEOUT_SECONDS = 20.0


def read_twins(broker: Broker, devices: Collection[str]) -> dict[str, Reported]:
    """Return the twins of these devices, as the broker retains them."""
    by_topic = {topics.device_topic(FLEET, device, Channel.REPORTED): device for device in devices}
    payloads = read_retained(broker, list(by_topic))
    return {by_topic[topic]: Reported.model_validate_json(payload) for topic, payload in payloads.items()}


def read_retained(broker: Broker, wanted: Collection[str]) -> dict[str, bytes]:
    """Return the retained message of each topic; every topic must have one."""
    found: dict[str, bytes] = {}

    def keep(_client: Client, _data: Any, message: MQTTMessage) -> None:
        found.setdefault(message.topic, message.payload)

    client = Client(CallbackAPIVersion.VERSION2)
    client.on_message = keep
    client.connect(broker.host, broker.port)
    client.subscribe([(topic, 1) for topic in wanted])
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while len(found) < len(wanted):
        if time.monotonic() > deadline:
            raise ServerProblem(f"The broker retains nothing on {', '.join(sorted(set(wanted) - set(found)))}.")
        client.loop(timeout=0.2)
    client.disconnect()
    return found
