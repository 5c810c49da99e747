"""Devices with files of their own on the run's broker, and folders with a job for one machine."""

import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml

from hedgerow_agent import cli
from servers.broker import Broker
from support.devices import Device, OperatorEnd
from support.digits import digits
from support.eventually import eventually
from support.train_command import Done, Train, job

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


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a job and data."""
    np.savez(tmp_path / "camera.npz", x=digits().x, y=digits().y)
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job()))
    return tmp_path


@pytest.fixture
def train(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Train]:
    """Run the command in this process, where a second start costs nothing; what it does not catch fails the test."""
    monkeypatch.chdir(place)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def run(*arguments: object) -> Done:
        capsys.readouterr()
        code = cli.main(["train", *map(str, arguments)])
        return Done(code, *capsys.readouterr())

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)
