"""The real operator as a process, on a real API server and a real broker, in a namespace of its own."""

import json
import sys
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from lightkube import ApiError, Client
from lightkube.config.kubeconfig import KubeConfig

from hedgerow_operator.kube import KINDS as KUBE_KINDS
from hedgerow_plans.protocol.keys import generate_private_key, key_id, private_key_text
from hedgerow_plans.resources.kinds import KINDS
from servers import broker as mqtt_broker
from servers import ports, processes
from servers.broker import Broker
from servers.commands import Command
from servers.control_plane import ControlPlane
from servers.crds import wait_until_established
from servers.processes import Process
from support.eventually import eventually
from support.fake_device import FakeDevice

CRDS = Path(__file__).parents[2] / "crds"
SCRIPTS = Path(sys.executable).parent


@dataclass
class OperatorUnderTest:
    """An operator with everything it needs, and the devices of its fleet."""

    namespace: str
    kubectl: Command
    kubeconfig: Path
    broker: Broker
    folder: Path
    port: int
    key: Any = field(default_factory=generate_private_key)
    settings: dict[str, str] = field(default_factory=dict)
    process: Process | None = None
    devices: list[FakeDevice] = field(default_factory=list)

    @cached_property
    def api(self) -> Client:
        """The API server, without kubectl."""
        return Client(KubeConfig.from_file(str(self.kubeconfig)), trust_env=False)

    def start(self) -> None:
        """Start the operator and wait until it is ready."""
        key_file = self.folder / "signing.key"
        key_file.write_text(private_key_text(self.key))
        environment = {
            "KUBECONFIG": str(self.kubeconfig),
            "HEDGEROW_NAMESPACES": self.namespace,
            "HEDGEROW_BROKER_HOST": self.broker.host,
            "HEDGEROW_BROKER_PORT": str(self.broker.port),
            "HEDGEROW_BROKER_CLIENT_ID": f"operator-{self.namespace}",
            "HEDGEROW_SIGNING_KEY_FILE": str(key_file),
            "HEDGEROW_MEMO_FOLDER": str(self.folder / "memo"),
            "HEDGEROW_METRICS_PORT": str(self.port),
            "HEDGEROW_HEALTH_PORT": str(self.port),
            "HEDGEROW_LISTEN_ADDRESS": "127.0.0.1",
            "HEDGEROW_HEALTH_GRACE_SECONDS": "2",
            "HEDGEROW_LOG_FORMAT": "full",
        } | self.settings
        words = [f"{name}={value}" for name, value in environment.items()]
        program = [*words, str(SCRIPTS / "hedgerow-operator")]
        log = self.folder / "operator.log"
        self.process = processes.start("hedgerow-operator", Path("/usr/bin/env"), program, log)
        eventually(lambda: self.answer("/readyz")[0] == 200 or not self.is_running, "the operator is ready")
        assert self.is_running, self.process.log_text()

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.is_running

    def stop(self) -> None:
        if self.process is not None:
            self.process.stop()

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()

    def answer(self, path: str) -> tuple[int, str]:
        """Ask its HTTP side; status 0 when nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()
        except OSError as problem:
            return 0, str(problem)

    def device(self, name: str, device_class: str | None = None, **birth: Any) -> FakeDevice:
        """Connect a device; with a class it says its birth as well."""
        trusted = {key_id(self.key.public_key()): self.key.public_key()}
        device = FakeDevice(self.namespace, name, self.broker.port, trusted).connect()
        self.devices.append(device)
        if device_class is not None:
            device.birth(device_class, **birth)
        return device

    def approved_device(self, name: str, device_class: str, **birth: Any) -> FakeDevice:
        """Connect a device and approve it as a person would."""
        device = self.device(name, device_class, **birth)
        eventually(lambda: self.get("device", name), f"device {name} is registered")
        self.patch("device", name, {"spec": {"approved": True}})
        return device

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """Return an object, empty if there is none; not by kubectl, which takes longer to start than to answer."""
        try:
            found: Any = self.api.get(KUBE_KINDS[f"{kind}s"], name, namespace=self.namespace)
        except ApiError as problem:
            if problem.status.code != HTTPStatus.NOT_FOUND:
                raise
            return {}
        return dict(found.to_dict())

    def status(self, kind: str, name: str) -> dict[str, Any]:
        return dict(self.get(kind, name).get("status") or {})

    def condition(self, job: str, kind: str) -> dict[str, Any]:
        """Return a condition of a job, empty if it has none."""
        conditions = self.status("trainingjob", job).get("conditions", [])
        return next((dict(condition) for condition in conditions if condition["type"] == kind), {})

    def explained(self, job: str, kind: str, reason: str) -> dict[str, Any]:
        """Wait until a condition has a reason, and return it."""

        def look() -> dict[str, Any]:
            found = self.condition(job, kind)
            return found if found.get("reason") == reason else {}

        return eventually(look, f"{kind} of job {job} is {reason}")

    def patch(self, kind: str, name: str, change: dict[str, Any]) -> None:
        self.kubectl("patch", kind, name, "-n", self.namespace, "--type=merge", "-p", json.dumps(change))

    def apply(self, manifest: dict[str, Any]) -> None:
        self.kubectl("apply", "-n", self.namespace, "-f", "-", input=json.dumps(manifest))

    def plugin(self, *arguments: str) -> Any:
        """Run the kubectl plugin as kubectl would."""
        environment = dict(self.kubectl.environment) | {"KUBECONFIG": str(self.kubeconfig)}
        return Command(SCRIPTS / "kubectl-hedgerow", environment)(*arguments, "-n", self.namespace, check=False)

    def close(self) -> None:
        for device in self.devices:
            device.disconnect()
        self.stop()
        self.api.close()
        self.kubectl("delete", "namespace", self.namespace, "--wait=false", "--ignore-not-found")


StartOperator = Callable[..., OperatorUnderTest]


@pytest.fixture(scope="session")
def crds(kubectl: Command) -> None:
    """Our kinds, established in the cluster."""
    kubectl("apply", "--server-side", "-f", CRDS)
    wait_until_established(kubectl, *(f"{kind.plural}.hedgerow.dev" for kind in KINDS))


@pytest.fixture(scope="module")
def start_operator(
    control_plane: ControlPlane, crds: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StartOperator]:
    """Start an operator with a namespace and a broker of its own; all of it ends with the module."""
    with ExitStack() as stack:

        def start(**settings: str) -> OperatorUnderTest:
            folder = tmp_path_factory.mktemp("operator")
            name = f"fleet-{uuid.uuid4().hex[:10]}"
            control_plane.kubectl("create", "namespace", name)
            broker = stack.enter_context(mqtt_broker.start(folder))
            operator = OperatorUnderTest(
                name, control_plane.kubectl, control_plane.kubeconfig, broker, folder, _free_port(), settings=settings
            )
            stack.callback(operator.close)
            operator.start()
            return operator

        yield start


def _free_port() -> int:
    return ports.free_ports(1)[0]


def device_class(name: str, budget: str = "256Ki", **memory: str) -> dict[str, Any]:
    """Return the manifest of a class."""
    return {
        "apiVersion": "hedgerow.dev/v1alpha1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {
            "memory": {"budget": budget, **memory},
            "compute": {"flopsPerSecond": 1_000_000_000, "picojoulesPerFlop": 1000},
        },
    }


def training_job(name: str, site: str = "north", **spec: Any) -> dict[str, Any]:
    """Return the manifest of a small job."""
    return {
        "apiVersion": "hedgerow.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": name},
        "spec": {
            "model": {"zoo": "mlp", "weights": {"uri": "file:digits.safetensors", "sha256": "a" * 64}},
            "dataset": "digits",
            "method": {"lora": {"rank": 4}},
            "training": {"epochs": 2, "batchSize": 16, "optimizer": {"sgd": {"learningRate": "0.05"}}},
            "devices": {"selector": {"matchLabels": {"device.hedgerow.dev/site": site}}},
        }
        | spec,
    }
