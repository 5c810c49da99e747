"""The chart: what it renders, what it refuses, and what a real installation leaves in a real cluster."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from hedgerow_operator.settings import read_settings
from servers import control_plane
from servers.commands import Command
from servers.crds import wait_until_established
from servers.helm import runner
from servers.problems import ServerProblem
from support.dashboards import load_dashboards, queries
from support.repository import ROOT

pytestmark = pytest.mark.helm
CHART = ROOT / "helm/hedgerow"
BROKER = ("--set", "broker.host=broker.example")
PLURALS = ("trainingjobs", "deviceclasses", "devices", "executionplans")


def render(helm: Command, *options: str) -> dict[tuple[str, str], Any]:
    text = helm("template", "hedgerow", CHART, "-n", "farm", *options).stdout
    documents = [document for document in yaml.safe_load_all(text) if document]
    return {(document["kind"], document["metadata"]["name"]): document for document in documents}


def operator_environment(rendered: dict[tuple[str, str], Any]) -> dict[str, str]:
    container = rendered["Deployment", "hedgerow"]["spec"]["template"]["spec"]["containers"][0]
    return {entry["name"]: entry["value"] for entry in container["env"]}


def test_lint_is_clean(helm: Command) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", CHART, *BROKER).stdout


def test_it_renders_everything_that_an_operator_needs(helm: Command) -> None:
    rendered = render(helm, *BROKER)

    kinds = sorted(kind for kind, _ in rendered)
    assert kinds == sorted(
        ["ClusterRole"] * 3
        + ["ClusterRoleBinding", "ConfigMap", "Deployment", "Service", "ServiceAccount"]
        + ["CustomResourceDefinition"] * 4
    )


def test_the_crds_are_those_of_the_repository_and_survive_an_uninstallation(helm: Command) -> None:
    rendered = render(helm, *BROKER)

    for path in (ROOT / "crds").glob("*.yaml"):
        ours = yaml.safe_load(path.read_text())
        theirs = rendered["CustomResourceDefinition", ours["metadata"]["name"]]
        assert theirs["spec"] == ours["spec"]
        assert theirs["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_crds_can_be_left_out(helm: Command) -> None:
    rendered = render(helm, *BROKER, "--set", "crds.enabled=false")

    assert not [kind for kind, _ in rendered if kind == "CustomResourceDefinition"]


def test_there_is_one_operator_at_a_time_without_privileges(helm: Command) -> None:
    deployment = render(helm, *BROKER)["Deployment", "hedgerow"]["spec"]

    assert deployment["replicas"] == 1
    assert deployment["strategy"] == {"type": "Recreate"}
    pod = deployment["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_every_value_reaches_the_operators_settings(helm: Command) -> None:
    key_file = CHART / "Chart.yaml"  # any file that exists: the mount does not exist outside a pod
    rendered = render(
        helm,
        *("--set", "broker.host=mqtt.farm", "--set", "broker.port=8883", "--set", "broker.username=operator"),
        *("--set", "namespaces={north,south}", "--set", "devices.approveAutomatically=true"),
        *("--set", "metrics.perDevice=true", "--set", "metrics.port=9999"),
        *("--set", "planner.workers=3", "--set", "planner.timeoutSeconds=77"),
        *("--set", "devices.max=123456"),
    )

    settings = read_settings({**operator_environment(rendered), "HEDGEROW_SIGNING_KEY_FILE": str(key_file)})

    assert settings.namespaces == ("north", "south")
    assert (settings.broker.host, settings.broker.port, settings.broker.username) == ("mqtt.farm", 8883, "operator")
    assert settings.approve_automatically is True
    assert settings.max_devices == 123_456
    assert settings.metrics_per_device is True
    assert settings.metrics_port == 9999
    assert (settings.plan_workers, settings.plan_timeout_seconds) == (3, 77)


def test_devices_are_not_approved_by_default(helm: Command) -> None:
    assert operator_environment(render(helm, *BROKER))["HEDGEROW_AUTO_APPROVE"] == "false"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        pytest.param((), "broker.host is empty", id="no broker"),
        pytest.param((*BROKER, "--set", "broker.port=70000"), "70000", id="no such port"),
        pytest.param((*BROKER, "--set", "brokr.host=x"), "brokr", id="a typing error"),
        pytest.param(
            (*BROKER, "--set", "devices.approveAutomatically=maybe"), "approveAutomatically", id="not yes or no"
        ),
        pytest.param((*BROKER, "--set", "namespaces={North}"), "namespaces", id="not a namespace"),
    ],
)
def test_bad_values_are_refused_by_name(helm: Command, options: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(ServerProblem, match=sentence):
        render(helm, *options)


def test_the_dashboard_is_a_configmap_that_grafanas_sidecar_finds(helm: Command) -> None:
    config_map = render(helm, *BROKER)["ConfigMap", "hedgerow-dashboards"]

    assert config_map["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert {name: json.loads(text) for name, text in config_map["data"].items()} == load_dashboards()


def test_every_panel_asks_something_and_has_a_place_of_its_own() -> None:
    assert len(queries()) >= 15
    for dashboard in load_dashboards().values():
        cells = [
            (x, y)
            for panel in dashboard["panels"]
            for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
            for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
        ]
        assert len(cells) == len(set(cells))
        assert max(x for x, _ in cells) < 24


@pytest.fixture(scope="module")
def own_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Command, Command]]:
    """A kubectl and a helm for a cluster of one's own, in which nobody else has installed our CRDs."""
    with control_plane.start(tmp_path_factory.mktemp("cluster")) as started:
        yield started.kubectl, runner(tmp_path_factory.mktemp("helm"), started.kubeconfig)


@pytest.mark.cluster
def test_an_installation_with_defaults_leaves_exactly_the_expected_objects_and_its_removal_keeps_the_crds(
    own_cluster: tuple[Command, Command],
) -> None:
    kubectl, helm = own_cluster
    kubectl("create", "namespace", "farm")
    mine = ("-l", "app.kubernetes.io/instance=hedgerow", "-o", "name")
    namespaced = ("get", "deployment,service,configmap,serviceaccount,secret", "-n", "farm", *mine)
    cluster_wide = ("get", "clusterrole,clusterrolebinding,crd", *mine)

    helm("install", "hedgerow", CHART, "-n", "farm", *BROKER)

    assert set(kubectl(*namespaced).stdout.split()) == {
        "deployment.apps/hedgerow",
        "service/hedgerow-metrics",
        "configmap/hedgerow-dashboards",
        "serviceaccount/hedgerow",
    }
    crds = {f"customresourcedefinition.apiextensions.k8s.io/{name}.hedgerow.dev" for name in PLURALS}
    rbac = "rbac.authorization.k8s.io"
    assert set(kubectl(*cluster_wide).stdout.split()) == crds | {
        f"clusterrole.{rbac}/hedgerow",
        f"clusterrole.{rbac}/hedgerow-editor",
        f"clusterrole.{rbac}/hedgerow-viewer",
        f"clusterrolebinding.{rbac}/hedgerow",
    }
    assert kubectl("get", "configmap", "-n", "farm", "-l", "grafana_dashboard=1", "-o", "name").stdout.split() == [
        "configmap/hedgerow-dashboards"
    ]
    wait_until_established(kubectl, *(f"{name}.hedgerow.dev" for name in PLURALS))
    assert kubectl("get", "trainingjobs", "-A").returncode == 0

    helm("uninstall", "hedgerow", "-n", "farm")

    assert kubectl(*namespaced).stdout.split() == []
    assert set(kubectl("get", "crd", "-o", "name").stdout.split()) >= crds


@pytest.mark.cluster
def test_the_service_account_may_do_what_the_operator_does_and_no_more(own_cluster: tuple[Command, Command]) -> None:
    kubectl, helm = own_cluster
    helm("install", "hedgerow", CHART, "-n", "farm", "--create-namespace", *BROKER)
    wait_until_established(kubectl, *(f"{name}.hedgerow.dev" for name in PLURALS))
    account = "--as=system:serviceaccount:farm:hedgerow"

    def may(verb: str, resource: str) -> bool:
        answer = kubectl("auth", "can-i", verb, resource, account, "-A", check=False).stdout.strip()
        return answer == "yes"

    allowed = [
        ("watch", "trainingjobs.hedgerow.dev"),
        ("patch", "trainingjobs.hedgerow.dev/status"),
        ("create", "devices.hedgerow.dev"),
        ("create", "executionplans.hedgerow.dev"),
        ("create", "configmaps"),
        ("create", "events"),
        ("list", "namespaces"),
    ]
    forbidden = [
        ("get", "secrets"),
        ("create", "pods"),
        ("delete", "trainingjobs.hedgerow.dev"),
        ("delete", "namespaces"),
    ]
    assert [pair for pair in allowed if not may(*pair)] == []
    assert [pair for pair in forbidden if may(*pair)] == []
