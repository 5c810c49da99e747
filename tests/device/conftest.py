"""Devices with files of their own on the run's broker."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from servers.broker import Broker
from support.devices import Device, OperatorEnd
from support.eventually import eventually

V1_MEMORY = Path("/sys/fs/cgroup/memory")


@pytest.fixture
def device(broker: Broker, tmp_path: Path) -> Device:
    """A device nobody else has; its files are written by the test, which may want them otherwise."""
    return Device(tmp_path / "device", f"device-{uuid.uuid4().hex[:8]}", broker.port)


@pytest.fixture
def operator(device: Device) -> Iterator[OperatorEnd]:
    """The operator's end of the wire to the device."""
    with OperatorEnd(device) as end:
        yield end


@pytest.fixture
def memory_group() -> Iterator[Path]:
    """A real cgroup of version 1 with a memory controller; gone when the last process in it is."""
    if not os.access(V1_MEMORY / "cgroup.procs", os.W_OK):
        pytest.skip("the cgroup v1 memory controller is not mounted and writable on this machine")
    group = V1_MEMORY / f"hedgerow-test-{uuid.uuid4().hex[:8]}"
    group.mkdir()
    yield group
    eventually(lambda: not (group / "cgroup.procs").read_text(), "the group is empty")
    group.rmdir()
