"""The demo's stage for tests: real control plane, broker, Prometheus, operator and agents, with the demo's cast."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from demo.cast import DEVICES, DeviceRole
from demo.live import Show
from demo.stage import Stage, raise_curtain
from demo.story import Story
from provision.cache import cache_root
from sampledata.prepare import SampleData, prepare
from servers.saying import quiet


def prepare_data() -> SampleData:
    """Return the demo's data, made once and kept in the cache."""
    return prepare(cache_root(os.environ) / "sampledata", {role.name: role.drift for role in DEVICES}, quiet)


@contextmanager
def perform(folder: Path, devices: Sequence[DeviceRole], programs: Path) -> Iterator[Story]:
    """Raise the curtain for some of the cast; nothing has been applied yet. What was planned is kept in `programs`."""
    data = prepare_data()
    with raise_curtain(folder, data, devices, programs=programs) as stage, (folder / "shown.log").open("w") as log:
        yield Story(stage, data, Show(Console(file=log, width=160), None), devices)


def store_of(stage: Stage, device: str) -> Path:
    """Return the folder in which a device keeps its checkpoints."""
    return stage.folder / "devices" / device / "store"
