"""The control plane is a real one: CRDs' rules hold, namespaces end, owned objects are collected."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from servers import control_plane as kubernetes
from servers import ports
from servers.commands import Command
from servers.control_plane import ControlPlane
from servers.crds import wait_until_established
from servers.problems import ServerProblem
from support.eventually import eventually

pytestmark = pytest.mark.cluster

RULE = "self.lowest <= self.highest"
MESSAGE = "lowest must not be above highest; swap the two"


@dataclass(frozen=True, slots=True)
class Kind:
    """A CRD of this test's own: `group` is used by nobody else, on whatever cluster."""

    group: str

    def definition(self) -> dict[str, object]:
        number = {"type": "integer"}
        spec = {
            "type": "object",
            "required": ["lowest", "highest"],
            "properties": {"lowest": number, "highest": number},
            "x-kubernetes-validations": [{"rule": RULE, "message": MESSAGE}],
        }
        schema = {"type": "object", "required": ["spec"], "properties": {"spec": spec}}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.crd_name},
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": {"kind": "Span", "plural": "spans", "singular": "span"},
                "versions": [version],
            },
        }

    @property
    def crd_name(self) -> str:
        return f"spans.{self.group}"

    def span(self, namespace: str, name: str, lowest: int, highest: int) -> str:
        return json.dumps(
            {
                "apiVersion": f"{self.group}/v1",
                "kind": "Span",
                "metadata": {"namespace": namespace, "name": name},
                "spec": {"lowest": lowest, "highest": highest},
            }
        )


@pytest.fixture
def kind(kubectl: Command, namespace: str) -> Iterator[Kind]:
    kind = Kind(group=f"{namespace}.example.org")
    kubectl("apply", "-f", "-", input=json.dumps(kind.definition()))
    wait_until_established(kubectl, kind.crd_name)
    yield kind
    kubectl("delete", "crd", kind.crd_name)


def test_a_cel_rule_refuses_a_bad_object_with_its_message_and_accepts_a_good_one(
    kubectl: Command, namespace: str, kind: Kind
) -> None:
    refused = kubectl("apply", "-f", "-", input=kind.span(namespace, "bad", 5, 3), check=False)
    assert refused.returncode != 0
    assert MESSAGE in refused.stderr
    assert "bad" not in names(kubectl, kind.crd_name, namespace)

    kubectl("apply", "-f", "-", input=kind.span(namespace, "good", 3, 5))
    assert names(kubectl, kind.crd_name, namespace) == ["good"]


def test_a_deleted_namespace_takes_its_objects_with_it(kubectl: Command, namespace: str, kind: Kind) -> None:
    kubectl("apply", "-f", "-", input=kind.span(namespace, "inside", 1, 2))

    kubectl("delete", "namespace", namespace, "--timeout=90s")

    assert f"namespace/{namespace}" not in kubectl("get", "namespaces", "-o", "name").stdout.split()
    everywhere = kubectl("get", kind.crd_name, "--all-namespaces", "-o", "name").stdout
    assert everywhere.strip() == ""


def test_an_owned_object_is_collected_after_its_owner_and_others_stay(kubectl: Command, namespace: str) -> None:
    kubectl("create", "configmap", "owner", "-n", namespace)
    uid = kubectl("get", "configmap", "owner", "-n", namespace, "-o", "jsonpath={.metadata.uid}").stdout
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
    kubectl("create", "configmap", "owned", "-n", namespace)
    kubectl("create", "configmap", "free", "-n", namespace)
    patch = json.dumps({"metadata": {"ownerReferences": [reference]}})
    kubectl("patch", "configmap", "owned", "-n", namespace, "--type=merge", "-p", patch)

    kubectl("delete", "configmap", "owner", "-n", namespace)

    eventually(lambda: "owned" not in names(kubectl, "configmaps", namespace), "the owned object is collected")
    assert "free" in names(kubectl, "configmaps", namespace)


def test_a_user_without_a_role_is_refused(kubectl: Command, namespace: str) -> None:
    allowed = kubectl("auth", "can-i", "list", "configmaps", "-n", namespace, "--as=nobody", check=False)
    assert allowed.stdout.strip() == "no"


def test_a_cluster_the_developer_names_is_used_and_nothing_is_started(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEDGEROW_TEST_KUBECONFIG", str(control_plane.kubeconfig))
    with kubernetes.start_or_use(tmp_path) as named:
        assert named.processes == ()
        assert f"namespace/{namespace}" in named.kubectl("get", "namespaces", "-o", "name").stdout.split()
        named.kubectl("config", "set-context", "--current", "--namespace=elsewhere")
    assert "elsewhere" not in control_plane.kubeconfig.read_text()


def test_a_named_cluster_that_is_not_there_is_told_with_the_remedy(
    control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ServerProblem, match=r"kubeconfig \S+/missing .* is no file; correct it, or set HEDGEROW_TEST"):
        kubernetes.use(tmp_path, str(tmp_path / "missing"))

    (nobody,) = ports.free_ports(1)
    dead = tmp_path / "dead"
    live = control_plane.kubeconfig.read_text()
    dead.write_text(re.sub(r"server: \S+", f"server: https://127.0.0.1:{nobody}", live))
    with pytest.raises(ServerProblem, match=r"cluster of \S+/dead is not ready .* refused.*; start that cluster, or"):
        kubernetes.use(tmp_path, str(dead))


def names(kubectl: Command, resource: str, namespace: str) -> list[str]:
    template = "jsonpath={.items[*].metadata.name}"
    return kubectl("get", resource, "-n", namespace, "-o", template).stdout.split()
