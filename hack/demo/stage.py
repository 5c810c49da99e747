"""What runs: control plane, broker, Prometheus, operator and agents, in one folder, until the context ends."""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from demo.cast import DATASET, FLEET, SITE_LABELS, DeviceRole
from hedgerow_plans.protocol.keys import generate_private_key, key_id, private_key_text, public_key_text
from hedgerow_plans.resources.kinds import KINDS
from sampledata.prepare import SampleData
from servers import broker as mqtt_broker
from servers import control_plane as kubernetes
from servers import ports, processes
from servers import prometheus as prometheus_server
from servers.broker import Broker
from servers.commands import Command
from servers.control_plane import ControlPlane
from servers.crds import wait_until_established
from servers.processes import Process
from servers.prometheus import Prometheus
from servers.saying import Say, quiet

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(sys.executable).parent
SCRAPE_INTERVAL_SECONDS = 0.5

_AGENT_TOML = """\
fleet = "{fleet}"
device = "{name}"
class = "{device_class}"
labels = {{ {labels} }}

[broker]
host = "{host}"
port = {port}
first_retry_seconds = 0.2
longest_retry_seconds = 2.0

[keys]
trusted = {{ {key_id} = "{public_key}" }}

[storage]
folder = "store"

[models]
folder = "models"

[datasets]
{dataset} = "camera.npz"

[metrics]
port = 0

[timing]
telemetry_seconds = 1.0
progress_seconds = 0.25

[limits]
hysteresis_batches = 5
rest_between_steps_seconds = {rest_seconds}
"""


@dataclass(slots=True)
class Stage:
    """Everything that runs, and the means to start and stop parts of it."""

    folder: Path
    control_plane: ControlPlane
    broker: Broker
    prometheus: Prometheus
    operator_environment: Mapping[str, str]
    operator: Process | None = None
    agents: dict[str, Process] = field(default_factory=dict)

    @property
    def kubectl(self) -> Command:
        """A kubectl that talks to the control plane and finds our plugin."""
        return self.control_plane.kubectl

    def start_operator(self) -> None:
        """Start the operator, or start it again."""
        program, log = PROGRAMS / "hedgerow-operator", self.folder / "operator.log"
        self.operator = processes.start("operator", program, [], log, environment=self.operator_environment)

    def start_agent(self, name: str) -> None:
        """Start the agent of a device, or start it again."""
        folder = self.folder / "devices" / name
        options = ["run", "--config", str(folder / "agent.toml")]
        self.agents[name] = processes.start(f"agent {name}", PROGRAMS / "hedgerow-agent", options, folder / "agent.log")

    def config_file(self, name: str) -> Path:
        """Return the configuration of a device."""
        return self.folder / "devices" / name / "agent.toml"

    def stop(self) -> None:
        """Stop operator and agents; the servers stop with their contexts."""
        for process in [*self.agents.values(), *([self.operator] if self.operator else [])]:
            process.stop()


@contextmanager
def raise_curtain(
    folder: Path,
    data: SampleData,
    devices: Sequence[DeviceRole],
    say: Say = quiet,
    programs: Path | None = None,
) -> Iterator[Stage]:
    """Start the servers and the operator, install the CRDs and lay out the devices' disks; agents are not started.

    `programs` is where the operator remembers what it has planned; by itself it knows nothing.
    """
    # kubectl finds its plugins on PATH.
    os.environ["PATH"] = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    with ExitStack() as stack:
        control_plane = stack.enter_context(kubernetes.start_or_use(_new(folder / "control-plane"), say=say))
        broker = stack.enter_context(mqtt_broker.start(_new(folder / "broker"), say=say))
        metrics_port, health_port = ports.on_free_ports(2, lambda free: (free[0], free[1]))
        targets = {"hedgerow-operator": [f"127.0.0.1:{metrics_port}"]}
        prometheus = stack.enter_context(
            prometheus_server.start(
                _new(folder / "prometheus"), targets, interval_seconds=SCRAPE_INTERVAL_SECONDS, say=say
            )
        )
        key_file, trusted = _make_key(folder)
        environment = _operator_environment(control_plane, broker, key_file) | {
            "HEDGEROW_MEMO_FOLDER": str(programs or folder / "programs"),
            "HEDGEROW_METRICS_PORT": str(metrics_port),
            "HEDGEROW_HEALTH_PORT": str(health_port),
        }
        stage = Stage(folder, control_plane, broker, prometheus, environment)
        stack.callback(stage.stop)
        stage.kubectl("apply", "--server-side", "-f", ROOT / "crds")
        wait_until_established(stage.kubectl, *(f"{kind.plural}.hedgerow.dev" for kind in KINDS))
        stage.kubectl("create", "namespace", FLEET)
        say("Starting the operator.")
        stage.start_operator()
        for role in devices:
            _lay_out_device(stage, role, data, trusted)
        yield stage


def _new(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _make_key(folder: Path) -> tuple[Path, tuple[str, str]]:
    """Make the operator's signing key; return its file, and the id and text of its public half."""
    key = generate_private_key()
    file = folder / "signing.key"
    file.touch(mode=0o600)
    file.write_text(private_key_text(key) + "\n")
    return file, (key_id(key.public_key()), public_key_text(key.public_key()))


def _operator_environment(control_plane: ControlPlane, broker: Broker, key_file: Path) -> dict[str, str]:
    return {
        "KUBECONFIG": str(control_plane.kubeconfig),
        "HEDGEROW_NAMESPACES": FLEET,
        "HEDGEROW_BROKER_HOST": broker.host,
        "HEDGEROW_BROKER_PORT": str(broker.port),
        "HEDGEROW_SIGNING_KEY_FILE": str(key_file),
        "HEDGEROW_AUTO_APPROVE": "true",
        "HEDGEROW_DEVICE_METRICS": "true",
        "HEDGEROW_LISTEN_ADDRESS": "127.0.0.1",
    }


def _lay_out_device(stage: Stage, role: DeviceRole, data: SampleData, trusted: tuple[str, str]) -> None:
    """Write a device's disk: configuration, base model and its own images."""
    folder = _new(stage.folder / "devices" / role.name)
    shutil.copy2(data.base.file, _new(folder / "models") / data.base.file.name)
    shutil.copy2(data.datasets[role.name], folder / "camera.npz")
    labels = ", ".join(f'{key} = "{value}"' for key, value in SITE_LABELS.items())
    text = _AGENT_TOML.format(
        fleet=FLEET,
        name=role.name,
        device_class=role.device_class,
        labels=labels,
        host=stage.broker.host,
        port=stage.broker.port,
        key_id=trusted[0],
        public_key=trusted[1],
        dataset=DATASET,
        rest_seconds=role.rest_seconds,
    )
    stage.config_file(role.name).write_text(text)
