"""What the devices say about themselves on the broker: the retained twin of each."""

from collections.abc import Collection

from paho.mqtt import subscribe

from demo.cast import FLEET
from hedgerow_plans.protocol import topics
from hedgerow_plans.protocol.messages import Reported
from hedgerow_plans.protocol.topics import Channel
from servers.broker import Broker


def read_twins(broker: Broker, devices: Collection[str]) -> dict[str, Reported]:
    """Return the twins of these devices, as the broker retains them."""
    wanted = [topics.device_topic(FLEET, device, Channel.REPORTED) for device in devices]
    messages = subscribe.simple(  # type: ignore[no-untyped-call]  # paho leaves it untyped
        wanted, qos=1, msg_count=len(wanted), hostname=broker.host, port=broker.port
    )
    found = messages if isinstance(messages, list) else [messages]
    return {message.topic.split("/")[4]: Reported.model_validate_json(message.payload) for message in found}
