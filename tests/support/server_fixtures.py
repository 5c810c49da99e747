"""Fixtures for real servers; a plugin, so that tests about interrupted runs can load it into inner runs.

Nothing starts before a test asks for it, everything lives in pytest's temporary folder of this run and on
ports of its own, and each fixture stops exactly what it started.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import pytest

from servers import broker as mqtt_broker
from servers import control_plane as kubernetes
from servers import helm as helm_command
from servers import kubeconfig
from servers import prometheus as prometheus_server
from servers.broker import Broker
from servers.commands import Command
from servers.control_plane import ControlPlane
from servers.prometheus import Prometheus, Targets

StartPrometheus: TypeAlias = Callable[[Targets], Prometheus]

# Often enough that a test waits for no more than a blink.
_SCRAPE_INTERVAL_SECONDS = 0.2


def pytest_report_header() -> str | None:
    """Say so when the tests are about to use a cluster that is not ours."""
    named = kubeconfig.named_by_the_developer()
    return f"cluster: {named} (named by the developer; nothing is started)" if named else None


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A Kubernetes control plane for the whole run: the developer's, or one of our own."""
    with kubernetes.start_or_use(tmp_path_factory.mktemp("control-plane")) as started:
        yield started


@pytest.fixture(scope="session")
def kubectl(control_plane: ControlPlane) -> Command:
    """A kubectl that talks to the control plane."""
    return control_plane.kubectl


@pytest.fixture
def namespace(kubectl: Command) -> Iterator[str]:
    """A namespace nobody else has; its deletion is begun afterwards, and nobody waits for it."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker for the whole run: use topics of your own, and leave it running."""
    with mqtt_broker.start(tmp_path_factory.mktemp("broker")) as started:
        yield started


@pytest.fixture
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker for one test, which may restart it, kill it or delete its store."""
    with mqtt_broker.start(tmp_path_factory.mktemp("own-broker")) as started:
        yield started


@pytest.fixture(scope="session")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartPrometheus]:
    """Start a Prometheus that scrapes these targets; it runs until the end of the run."""
    with ExitStack() as stack:

        def start(targets: Targets) -> Prometheus:
            folder = tmp_path_factory.mktemp("prometheus")
            return stack.enter_context(
                prometheus_server.start(folder, targets, interval_seconds=_SCRAPE_INTERVAL_SECONDS)
            )

        yield start


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """A helm with folders of its own that reaches no cluster."""
    return helm_command.runner(tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def cluster_helm(tmp_path_factory: pytest.TempPathFactory, control_plane: ControlPlane) -> Command:
    """A helm with folders of its own that installs into the control plane."""
    return helm_command.runner(tmp_path_factory.mktemp("cluster-helm"), control_plane.kubeconfig)


@pytest.fixture(scope="session")
def servers_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which everything that this run starts lives."""
    return tmp_path_factory.getbasetemp()
