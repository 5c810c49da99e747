"""The CRDs on a real API server: it teaches, fills in, refuses with our words, and shows our columns."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hedgerow_plans.resources.columns import device_columns, job_columns
from hedgerow_plans.resources.device import Device, DeviceStatus
from hedgerow_plans.resources.kinds import KINDS
from hedgerow_plans.resources.parsing import parse_resource
from hedgerow_plans.resources.reasons import JobState
from hedgerow_plans.resources.training_job import DeviceCounts, JobAccuracy, TrainingJobStatus
from servers.commands import Command
from servers.crds import wait_until_established
from support.manifests import ROOT, Manifest, manifest, manifests

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module", autouse=True)
def crds(kubectl: Command) -> None:
    """Our kinds; they stay, because deleting a CRD deletes everybody's objects."""
    kubectl("apply", "--server-side", "--force-conflicts", "-f", ROOT / "crds")
    wait_until_established(kubectl, *(f"{kind.plural}.hedgerow.dev" for kind in KINDS))


class Namespaced:
    """kubectl in a namespace of the test's own; cluster-scoped objects carry the namespace in their names."""

    def __init__(self, kubectl: Command, namespace: str) -> None:
        self.kubectl = kubectl
        self.namespace = namespace
        self.cluster_scoped: list[str] = []

    def create(self, body: dict[str, Any]) -> None:
        self.kubectl("create", "--validate=strict", "-n", self.namespace, "-f", "-", input=json.dumps(body))
        if body["kind"] == "DeviceClass":
            self.cluster_scoped.append(body["metadata"]["name"])

    def get(self, resource: str, name: str) -> dict[str, Any]:
        found = self.kubectl("get", resource, name, "-n", self.namespace, "-o", "json").stdout
        body: dict[str, Any] = json.loads(found)
        return body

    def table(self, resource: str, *flags: str) -> tuple[list[str], str]:
        """Return the headings and the first line below them."""
        lines = self.kubectl("get", resource, "-n", self.namespace, *flags).stdout.splitlines()
        return lines[0].split(), lines[1]

    def set_status(self, resource: str, name: str, status: dict[str, Any], check: bool = True) -> str:
        patch = json.dumps({"status": status})
        done = self.kubectl(
            *("patch", resource, name, "-n", self.namespace, "--subresource=status", "--type=merge", "-p", patch),
            check=check,
        )
        return done.stdout + done.stderr


@pytest.fixture
def api(kubectl: Command, namespace: str) -> Iterator[Namespaced]:
    api = Namespaced(kubectl, namespace)
    yield api
    for name in api.cluster_scoped:
        kubectl("delete", "deviceclasses.hedgerow.dev", name, "--ignore-not-found")


def body_of(manifest_name: str, **metadata: Any) -> dict[str, Any]:
    body = manifest("good", manifest_name).body
    return body | {"metadata": body["metadata"] | metadata}


@pytest.mark.parametrize(
    ("path", "taught"),
    [
        ("trainingjob", "Trains a model on a set of devices, on their own data, inside their budgets."),
        ("trainingjob.spec.method", "What is trained: exactly one of the methods."),
        ("tj.spec.training.optimizer.sgd.momentum", 'Momentum, a decimal in quotes below 1 such as "0.9".'),
        ("dcl.spec.memory.allowance", "What may be used right now. Changing it moves devices up and down their plans"),
        ("dev.spec.rollback.to", "Where to go: last (the newest good checkpoint; progress since is dropped)"),
        ("xp.spec.digest", "sha256 of the encoded program; devices ask for it by this name."),
    ],
)
def test_kubectl_explain_teaches(kubectl: Command, path: str, taught: str) -> None:
    explained = " ".join(kubectl("explain", path).stdout.split())
    assert taught in explained


@pytest.mark.parametrize("good", manifests("good"), ids=lambda found: found.name)
def test_a_good_manifest_is_accepted_and_parses_the_same_after_the_server_filled_it_in(
    api: Namespaced, good: Manifest
) -> None:
    name = f"{api.namespace}-{good.name}"
    body = good.body | {"metadata": good.body["metadata"] | {"name": name}}
    api.create(body)
    stored = parse_resource(good.model, api.get(f"{good.body['kind']}.v1alpha1.hedgerow.dev", name))
    ours = parse_resource(good.model, body)
    assert stored.to_yaml_form()["spec"] == ours.to_yaml_form()["spec"]  # type: ignore[union-attr]


def test_the_server_fills_in_the_defaults(api: Namespaced) -> None:
    api.create(body_of("training-job-shortest"))
    spec = api.get("tj", "shortest")["spec"]
    assert spec["checkpoint"] == {"everySteps": 50, "keep": 3}
    assert spec["completion"] == {"successThresholdPercent": 100}
    assert spec["training"]["seed"] == 0
    assert spec["training"]["optimizer"]["sgd"] == {"learningRate": "1e-2", "momentum": "0", "weightDecay": "0"}
    assert spec["suspend"] is False
    assert spec["devices"] == {"selector": {}}
    assert "rollback" not in spec


@pytest.mark.parametrize("bad", manifests("bad"), ids=lambda found: found.name)
def test_a_bad_manifest_is_refused_with_its_golden_message(kubectl: Command, bad: Manifest) -> None:
    done = kubectl("create", "--dry-run=server", "--validate=strict", "-n", "default", "-f", bad.path, check=False)
    assert done.returncode != 0
    assert " ".join(done.stderr.split()).replace(str(bad.path), "FILE") == bad.golden("API server")


def test_a_status_is_written_through_its_subresource_only(api: Namespaced) -> None:
    api.create(body_of("device") | {"status": {"state": "Training"}})
    assert "status" not in api.get("device", "pump-07")

    api.set_status("device", "pump-07", {"state": "Lost"})
    after = api.get("device", "pump-07")
    assert after["status"] == {"state": "Lost"}
    assert after["metadata"]["generation"] == 1


def test_a_status_out_of_bounds_is_refused(api: Namespaced) -> None:
    api.create(body_of("training-job"))
    said = api.set_status("tj", "pump-drift", {"progressPercent": 101}, check=False)
    assert (
        "status.progressPercent: Invalid value: 101: progressPercent in body should be less than or equal to 100"
        in said
    )


def test_a_whole_status_survives_the_server(api: Namespaced) -> None:
    api.create(body_of("training-job"))
    status = job_status()
    api.set_status("tj", "pump-drift", status.to_yaml_form())
    assert TrainingJobStatus.model_validate(api.get("tj", "pump-drift")["status"]) == status


def test_the_columns_of_jobs(api: Namespaced) -> None:
    api.create(body_of("training-job"))
    api.set_status("tj", "pump-drift", job_status().to_yaml_form())
    headings, line = api.table("trainingjobs")
    assert headings == ["NAME", "STATE", "DEVICES", "DONE", "FAILED", "PROGRESS", "ACCURACY", "AGE"]
    assert line.split()[:-1] == ["pump-drift", "Training", "6", "2", "0", "61%", "0.71→0.94"]


def test_the_columns_of_devices_show_a_refusal_when_wide(api: Namespaced) -> None:
    api.create(body_of("device"))
    api.set_status("device", "pump-07", device_status().to_yaml_form())
    headings, line = api.table("devices")
    assert headings == ["NAME", "CLASS", "STATE", "JOB", "RUNG", "MEMORY", "CHECKPOINT", "AGE"]
    assert line.split()[:-1] == [
        *("pump-07", "raspberry-pi-4", "Training", "pump-drift", "2/4", "3.1Mi/3.2Mi", "step-000150")
    ]

    headings, line = api.table("devices", "-o", "wide")
    assert headings[8:] == ["APPROVED", "RUNNING", "ACCURACY", "ENERGY", "ROLLBACK", "REFUSED"]
    assert "0.71→0.94" in line
    assert "1.2J modelled" in line
    assert "Complete" in line
    assert line.endswith("2x Replayed: Its sequence 3 is not newer than 4.")


def test_the_columns_of_plans(api: Namespaced) -> None:
    api.create(body_of("execution-plan"))
    headings, line = api.table("executionplans")
    assert headings == ["NAME", "MODEL", "METHOD", "CLASS", "RUNGS", "FLOOR", "PEAK", "GAP", "AGE"]
    assert line.split()[1:-1] == ["small-cnn", "lora", "raspberry-pi-4", "2", "1.1Mi", "6.3Mi", "0.02%"]


def test_the_columns_of_classes(api: Namespaced) -> None:
    name = f"{api.namespace}-class"
    api.create(body_of("device-class", name=name))
    headings, line = api.table(f"deviceclasses.hedgerow.dev/{name}")
    assert headings == ["NAME", "BUDGET", "ALLOWANCE", "FLOPS", "AGE"]
    assert line.split()[:-1] == [name, "256Mi", "128Mi", "2000000000"]


def test_a_class_is_found_by_its_short_name_where_kubernetes_has_a_kind_of_the_same_name(api: Namespaced) -> None:
    name = f"{api.namespace}-class"
    api.create(body_of("device-class", name=name))
    found = api.kubectl("get", "dcl", name, "-o", "name").stdout
    assert found.strip() == f"deviceclass.hedgerow.dev/{name}"


def test_all_kinds_of_a_namespace_are_found_by_their_category(api: Namespaced) -> None:
    for name in ("training-job", "device", "execution-plan"):
        api.create(body_of(name))
    found = api.kubectl("get", "hedgerow", "-n", api.namespace, "-o", "name").stdout
    for expected in (
        "trainingjob.hedgerow.dev/pump-drift",
        "device.hedgerow.dev/pump-07",
        "executionplan.hedgerow.dev/",
    ):
        assert expected in found


def test_devices_are_found_by_class_and_state(api: Namespaced) -> None:
    api.create(body_of("device"))
    api.create(body_of("device-shortest"))
    api.set_status("device", "pump-07", {"state": "Training"})
    found = api.kubectl(
        *("get", "devices", "-n", api.namespace, "-o", "name"),
        *("--field-selector", "spec.class=raspberry-pi-4,status.state=Training"),
    )
    assert found.stdout.split() == ["device.hedgerow.dev/pump-07"]


def test_a_plan_is_never_edited_and_a_job_may_be(api: Namespaced) -> None:
    api.create(body_of("execution-plan"))
    plan = body_of("execution-plan")["metadata"]["name"]
    edit = ("-n", api.namespace, "--type=merge", "-p")
    refused = api.kubectl("patch", "xp", plan, *edit, '{"spec": {"batchSize": 64}}', check=False)
    assert "an ExecutionPlan is never edited: delete it, and the operator computes it again" in refused.stderr

    api.create(body_of("training-job"))
    api.kubectl("patch", "tj", "pump-drift", *edit, '{"spec": {"training": {"epochs": 9}}}')
    edited = api.get("tj", "pump-drift")
    assert (edited["spec"]["training"]["epochs"], edited["metadata"]["generation"]) == (9, 2)


def test_an_allowance_moves_with_a_patch_and_never_above_the_budget(api: Namespaced) -> None:
    name = f"{api.namespace}-class"
    api.create(body_of("device-class", name=name))
    squeezed = '{"spec": {"memory": {"allowance": "80Mi"}}}'
    api.kubectl("patch", "dcl", name, "--type=merge", "-p", squeezed)
    assert api.get("dcl", name)["spec"]["memory"]["allowance"] == "80Mi"

    above = '{"spec": {"memory": {"allowance": "257Mi"}}}'
    refused = api.kubectl("patch", "dcl", name, "--type=merge", "-p", above, check=False)
    assert "allowance must not be above budget" in refused.stderr
    assert api.get("dcl", name)["spec"]["memory"]["allowance"] == "80Mi"


def test_what_the_operator_writes_for_a_device_is_read_back_the_same(api: Namespaced) -> None:
    api.create(body_of("device"))
    api.set_status("device", "pump-07", device_status().to_yaml_form())
    stored = parse_resource(Device, api.get("device", "pump-07"))
    assert isinstance(stored, Device)
    assert stored.status == device_status()


def job_status() -> TrainingJobStatus:
    status = TrainingJobStatus(
        state=JobState.TRAINING,
        devices=DeviceCounts(matched=6, approved=6, training=4, completed=2),
        progress_percent=61,
        accuracy=JobAccuracy(before="0.71", now="0.94"),
    )
    return status.model_copy(update={"columns": job_columns(status)})


def device_status() -> DeviceStatus:
    status = DeviceStatus.model_validate(
        {
            "connection": "online",
            "state": "Training",
            "phase": "Training",
            "job": "pump-drift",
            "rung": 1,
            "rungs": 4,
            "memory": {"planned": 3_250_586, "measured": 3_250_586, "budget": 3_355_443},
            "accuracy": {"before": "0.71", "now": "0.94"},
            "energy": {"microjoules": 1_200_000, "source": "modelled"},
            "checkpoint": "step-000150",
            "checkpoints": [{"id": "step-000150", "step": 150, "sha256": "a" * 64, "sizeBytes": 900}],
            "running": "step-000150",
            "rollback": {"requestId": "a", "result": "Complete", "running": "step-000150"},
            "refusal": {"count": 2, "reason": "Replayed", "message": "Its sequence 3 is not newer than 4."},
            "lastSeen": "2026-01-01T00:00:00Z",
        }
    )
    return status.model_copy(update={"columns": device_columns(status)})
