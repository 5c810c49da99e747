"""The broker is a real one, and can be restarted, killed and robbed of its store."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from servers import broker as mqtt_broker
from servers.broker import Broker
from servers.mosquitto import Options

pytestmark = pytest.mark.broker

TOPIC = "fleet/plan"


def test_a_retained_message_survives_a_restart_on_the_same_port(own_broker: Broker) -> None:
    publish_retained(own_broker, b"kept")
    port = own_broker.port

    own_broker.restart()

    assert own_broker.port == port
    assert retained(own_broker) == b"kept"


def test_a_retained_message_is_gone_when_the_store_was_deleted(own_broker: Broker) -> None:
    publish_retained(own_broker, b"lost")
    assert retained(own_broker) == b"lost"

    own_broker.kill()
    assert not own_broker.is_running
    own_broker.delete_store()
    own_broker.start()

    assert retained(own_broker) is None


def test_a_killed_broker_loses_what_it_had_not_saved(own_broker: Broker) -> None:
    publish_retained(own_broker, b"saved")
    own_broker.save()
    publish_retained(own_broker, b"not saved")

    own_broker.kill()
    own_broker.start()

    assert retained(own_broker) == b"saved"


def test_passwords_and_access_rules_are_enforced(tmp_path: Path) -> None:
    options = Options(
        passwords={"device": "correct horse", "operator": "battery"},
        access_rules="user operator\ntopic readwrite fleet/#\nuser device\ntopic read fleet/#\n",
    )
    with mqtt_broker.start(tmp_path, options) as broker:
        with pytest.raises(ConnectionRefusedError, match="Not authorized"), client(broker):
            pass
        with pytest.raises(ConnectionRefusedError, match="Not authorized"), client(broker, "device", "wrong"):
            pass
        publish_retained(broker, b"by the device", "device", "correct horse")
        assert retained(broker, "operator", "battery") is None
        publish_retained(broker, b"by the operator", "operator", "battery")
        assert retained(broker, "device", "correct horse") == b"by the operator"


@contextmanager
def client(broker: Broker, user: str | None = None, password: str | None = None) -> Iterator[paho.Client]:
    """A connected MQTT 5 client; ConnectionRefusedError when the broker does not let it in."""
    answered, answers = threading.Event(), []

    def on_connect(*arguments: object) -> None:
        answers.append(arguments[3])
        answered.set()

    connecting = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
    connecting.on_connect = on_connect
    if user is not None:
        connecting.username_pw_set(user, password)
    connecting.connect(broker.host, broker.port)
    connecting.loop_start()
    try:
        assert answered.wait(10), "the broker did not answer CONNECT"
        if str(answers[0]) != "Success":
            raise ConnectionRefusedError(str(answers[0]))
        yield connecting
    finally:
        connecting.disconnect()
        connecting.loop_stop()


def publish_retained(broker: Broker, payload: bytes, user: str | None = None, password: str | None = None) -> None:
    with client(broker, user, password) as publisher:
        publisher.publish(TOPIC, payload, qos=1, retain=True).wait_for_publish(10)


def retained(broker: Broker, user: str | None = None, password: str | None = None) -> bytes | None:
    """What a new subscriber is given at once: it comes before the answer to the packet sent next."""
    received: list[bytes] = []
    ended = threading.Event()
    with client(broker, user, password) as subscriber:
        subscriber.on_message = lambda _client, _userdata, message: received.append(bytes(message.payload))
        subscriber.on_unsubscribe = lambda *_arguments: ended.set()
        subscriber.subscribe(TOPIC, qos=1)
        subscriber.unsubscribe(TOPIC)
        assert ended.wait(10), "the broker did not answer UNSUBSCRIBE"
    return received[0] if received else None
