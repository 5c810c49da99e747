"""Devices with files of their own on the run's broker."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from servers.broker import Broker
from support.devices import Device, OperatorEnd


@pytest.fixture
def device(broker: Broker, tmp_path: Path) -> Device:
    """A device nobody else has; its files are written by the test, which may want them otherwise."""
    return Device(tmp_path / "device", f"device-{uuid.uuid4().hex[:8]}", broker.port)


@pytest.fixture
def operator(device: Device) -> Iterator[OperatorEnd]:
    """The operator's end of the wire to the device."""
    with OperatorEnd(device) as end:
        yield end
