"""The operator works with the rights that the chart gives it, and never asks for more."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from servers.commands import Command
from servers.control_plane import ControlPlane
from support.eventually import eventually
from support.operator_fixtures import StartOperator, device_class, training_job

pytestmark = [pytest.mark.cluster, pytest.mark.broker, pytest.mark.helm]

CHART = Path(__file__).parents[2] / "helm" / "hedgerow"


@pytest.fixture
def restricted_kubeconfig(control_plane: ControlPlane, helm: Command, tmp_path: Path) -> Iterator[Path]:
    """A kubeconfig whose user may do what the chart's ClusterRole says, and nothing else."""
    name = f"operator-{uuid.uuid4().hex[:10]}"
    rendered = helm("template", name, CHART, "--show-only", "templates/rbac.yaml", "--set", "broker.host=broker").stdout
    role = next(d for d in yaml.safe_load_all(rendered) if d["kind"] == "ClusterRole" and "aggregate" not in str(d))
    role["metadata"] = {"name": name}
    kubectl = control_plane.kubectl
    kubectl("apply", "-f", "-", input=json.dumps(role))
    kubectl("create", "serviceaccount", name, "-n", "default")
    kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", f"--serviceaccount=default:{name}")
    token = kubectl("create", "token", name, "-n", "default").stdout.strip()
    config: dict[str, Any] = yaml.safe_load(control_plane.kubeconfig.read_text())
    config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    yield file
    kubectl("delete", "clusterrolebinding,clusterrole", name)
    kubectl("delete", "serviceaccount", name, "-n", "default")


def test_the_charts_rights_suffice(restricted_kubeconfig: Path, start_operator: StartOperator) -> None:
    operator = start_operator(KUBECONFIG=str(restricted_kubeconfig), HEDGEROW_AUTO_APPROVE="true")
    name = f"board-{operator.namespace}"
    operator.apply(device_class(name))
    device = operator.device("pump-01", name)
    operator.apply(training_job("run"))
    eventually(lambda: device.assignment, "the device gets work")
    operator.explained("run", "Planned", "ProgramsReady")
    eventually(
        lambda: "ProgramPlanned" in operator.kubectl("get", "events", "-n", operator.namespace).stdout, "it is told"
    )
    eventually(lambda: operator.status("device", "pump-01").get("job") == "run", "the device's status is written")
    operator.kubectl("delete", "trainingjob", "run", "-n", operator.namespace)
    eventually(lambda: device.desired and device.desired.assignment is None, "the device stops")
    assert operator.process is not None
    log = operator.process.log_text().lower()
    assert "forbidden" not in log, log[-3000:]
    assert "traceback" not in log, log[-3000:]
