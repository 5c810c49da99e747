"""A real etcd, as fast as it gets: nothing is synced to disk, because nothing in it is meant to last."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from provision.find import locate
from servers import ports, processes, web
from servers.ports import LOOPBACK
from servers.processes import Process
from servers.saying import Say, quiet

_GRACE_SECONDS = 2.0  # nothing in it is meant to last


@dataclass(frozen=True, slots=True)
class Etcd:
    """A running etcd."""

    process: Process
    url: str


@contextmanager
def start(folder: Path, *, say: Say = quiet) -> Iterator[Etcd]:
    """Run etcd in `folder` while the context lasts."""
    say("Starting etcd.")
    etcd = ports.on_free_ports(2, lambda pair: _launch(folder, *pair))
    try:
        yield etcd
    finally:
        etcd.process.stop()


def _launch(folder: Path, client_port: int, peer_port: int) -> Etcd:
    client, peer = f"http://{LOOPBACK}:{client_port}", f"http://{LOOPBACK}:{peer_port}"
    options = [
        f"--data-dir={folder / 'etcd'}",
        "--unsafe-no-fsync",
        # A lone member is elected after one timeout, and nobody is there to take its place.
        "--heartbeat-interval=20",
        "--election-timeout=200",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
    ]
    log = folder / "etcd.log"
    process = processes.start("etcd", locate("etcd").path, options, log, grace_seconds=_GRACE_SECONDS)
    process.wait_until_ready(lambda: web.is_ok(client_port, "/readyz"), port=client_port)
    return Etcd(process, client)
