"""The whole product from the outside: what kubectl prints, what the broker carries, what Prometheus answers.

One story is played once, then each test looks at another side of it. The last tests go on with the fleet: documents
that must be refused, rollbacks, deletion.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml
from paho.mqtt import publish

from demo.cast import DEVICES, FLEET, JOB, SQUEEZED_CLASS, job_manifest
from demo.story import Story
from demo.twins import read_retained, read_twins
from demo.watching import look_at_devices
from hedgerow_plans.protocol import topics
from hedgerow_plans.protocol.messages import Phase, Reported
from hedgerow_plans.protocol.topics import Channel
from sampledata import base_model
from sampledata.base_model import Recipe
from sampledata.images import load_mnist
from servers.saying import quiet
from support.dashboards import queries
from support.eventually import eventually
from support.sampling import THOROUGH
from support.theatre import perform

pytestmark = [pytest.mark.cluster, pytest.mark.broker, pytest.mark.prometheus]

CAST = DEVICES if THOROUGH else DEVICES[::2]  # one of each class
BACKENDS = ["native", "numpy"] if THOROUGH else ["native"]
NAMES = [role.name for role in CAST]
NAME_LABEL = "example.org/name"
SQUEEZED = [role.name for role in CAST if role.device_class == SQUEEZED_CLASS]


@pytest.fixture(scope="module", params=BACKENDS)
def story(tmp_path_factory: pytest.TempPathFactory, programs: Path, request: pytest.FixtureRequest) -> Iterator[Story]:
    with pytest.MonkeyPatch.context() as devices:
        devices.setenv("HEDGEROW_BACKEND", request.param)
        with perform(tmp_path_factory.mktemp("slice") / "stage", CAST, programs) as played:
            played.register()
            played.train()
            yield played


@pytest.fixture(scope="module")
def twins(story: Story) -> dict[str, Reported]:
    return read_twins(story.stage.broker, NAMES)


def columns(story: Story, *arguments: str) -> dict[str, str]:
    """Return the rows that kubectl prints, by their first word."""
    lines = story.stage.kubectl("get", *arguments, "-n", FLEET, "--no-headers").stdout.splitlines()
    return {line.split()[0]: line for line in lines}


def publish_desired(story: Story, device: str, payload: bytes) -> None:
    broker = story.stage.broker
    topic = topics.device_topic(FLEET, device, Channel.DESIRED)
    publish.single(topic, payload, qos=1, hostname=broker.host, port=broker.port)


def test_kubectl_shows_the_job_succeeded_on_every_device(story: Story) -> None:
    row = columns(story, "trainingjobs")[JOB].split()

    assert row[1:6] == ["Succeeded", str(len(CAST)), str(len(CAST)), "0", "100%"]


def test_kubectl_shows_what_computes_on_every_device(story: Story, request: pytest.FixtureRequest) -> None:
    listed = json.loads(story.stage.kubectl("get", "devices", "-n", FLEET, "-o", "json").stdout)["items"]

    backend = request.node.callspec.params["story"]
    assert {device["metadata"]["name"]: device["status"]["agent"]["backend"] for device in listed} == dict.fromkeys(
        NAMES, backend
    )


def test_every_device_wins_back_at_least_half_of_what_its_drift_cost(story: Story) -> None:
    clean_accuracy = story.data.base.accuracy
    for name, view in look_at_devices(story.stage.kubectl).items():
        assert view.accuracy_before is not None, name
        assert view.accuracy_after is not None, name
        cost = clean_accuracy - view.accuracy_before
        assert cost > 0.1, f"{name}'s drift costs almost nothing: nothing can be shown with it"
        assert view.accuracy_after - view.accuracy_before >= cost / 2, (name, clean_accuracy, view)


def test_the_measured_peak_is_the_planned_one_and_below_the_budget(story: Story, twins: dict[str, Reported]) -> None:
    for name, twin in twins.items():
        assert twin.progress is not None, name
        memory, peaks = twin.progress.memory, twin.progress.peaks
        assert memory.measured_bytes == memory.planned_bytes, name
        assert {peak.rung for peak in peaks} == set(twin.progress.rungs_used), name
        assert [peak.measured_bytes for peak in peaks] == [peak.planned_bytes for peak in peaks], name
        assert memory.planned_bytes <= memory.budget_bytes, name

    def seen_by_prometheus(what: str) -> dict[str, float]:
        samples = story.stage.prometheus.query(f"hedgerow_device_arena_{what}_bytes")
        return {sample.labels["device"]: sample.value for sample in samples}

    eventually(lambda: sorted(seen_by_prometheus("measured")) == sorted(NAMES), "Prometheus knows every device")
    assert seen_by_prometheus("measured") == seen_by_prometheus("planned")


def test_no_device_was_ever_above_its_budget_according_to_prometheus(story: Story) -> None:
    above = "hedgerow_device_arena_measured_bytes > hedgerow_device_arena_budget_bytes"

    assert story.stage.prometheus.query(f"count_over_time(({above})[10m:1s])") == []


def test_the_squeezed_devices_went_down_a_rung_and_up_again(story: Story, twins: dict[str, Reported]) -> None:
    for name in SQUEEZED:
        progress = twins[name].progress
        assert progress is not None
        assert progress.switches_down >= 1
        assert progress.switches_up >= 1
        assert len(progress.rungs_used) >= 2
        assert progress.rung == 0

    for direction in ("down", "up"):
        query = f'hedgerow_fleet_rung_switches{{class="{SQUEEZED_CLASS}",direction="{direction}"}}'
        assert [sample.value >= 1 for sample in story.stage.prometheus.query(query)] == [True]


def test_every_class_has_a_plan_with_at_least_three_rungs(story: Story) -> None:
    listed = json.loads(story.stage.kubectl("get", "executionplans", "-n", FLEET, "-o", "json").stdout)["items"]

    assert sorted(plan["spec"]["class"] for plan in listed) == sorted({role.device_class for role in CAST})
    assert all(len(plan["spec"]["rungs"]) >= 3 for plan in listed)


def test_every_query_of_the_dashboard_returns_data(story: Story) -> None:
    for query in queries():
        eventually(lambda query=query: story.stage.prometheus.query(query), f"{query} returns something")  # type: ignore[misc]


def test_an_unsigned_document_is_refused_and_kubectl_shows_it(story: Story) -> None:
    device = NAMES[0]
    publish_desired(story, device, b'{"kind": "desired", "assignment": null}')

    eventually(
        lambda: "Unsigned" in columns(story, "devices", "-o", "wide")[device], "the refusal is in the wide columns"
    )


def test_an_altered_document_is_refused_and_kubectl_shows_it(story: Story) -> None:
    device = NAMES[0]
    topic = topics.device_topic(FLEET, device, Channel.DESIRED)
    document = json.loads(read_retained(story.stage.broker, [topic])[topic])
    document["sequence"] += 1
    publish_desired(story, device, json.dumps(document, sort_keys=True, separators=(",", ":")).encode())

    eventually(
        lambda: "BadSignature" in columns(story, "devices", "-o", "wide")[device],
        "the refusal is in the wide columns",
    )


def test_a_replayed_older_document_is_refused_and_kubectl_shows_it(story: Story) -> None:
    device = NAMES[0]
    topic = topics.device_topic(FLEET, device, Channel.DESIRED)
    older = read_retained(story.stage.broker, [topic])[topic]
    patch = json.dumps({"spec": {"memoryOverride": "3Mi"}})
    story.stage.kubectl("patch", "device", device, "-n", FLEET, "--type=merge", "-p", patch)
    sequence = json.loads(older)["sequence"]
    eventually(
        lambda: read_twins(story.stage.broker, [device])[device].observed_sequence > sequence,
        "the device accepts the newer document",
    )

    publish_desired(story, device, older)

    eventually(
        lambda: "Replayed" in columns(story, "devices", "-o", "wide")[device], "the refusal is in the wide columns"
    )


def test_one_device_is_rolled_back_and_predicts_as_the_base_model_does(story: Story) -> None:
    device = NAMES[-1]
    probe = story.probe(device)
    base, trained = base_model.predict(story.data.base, probe), story.predict(device, probe)
    assert base != trained

    story.stage.kubectl("hedgerow", "rollback", f"device/{device}", "--to", "base", "-n", FLEET)

    eventually(lambda: look_at_devices(story.stage.kubectl)[device].rollback_result == "Complete", "it is complete")
    eventually(lambda: look_at_devices(story.stage.kubectl)[device].state == "Held", "the device is held")
    assert story.predict(device, probe) == base
    assert look_at_devices(story.stage.kubectl)[device].running == "base"


def test_a_whole_job_is_rolled_back_by_patching_a_field(story: Story) -> None:
    request = {"spec": {"rollback": {"request": {"to": "previous", "requestId": "night-1"}}}}
    story.stage.kubectl("patch", "trainingjob", JOB, "-n", FLEET, "--type=merge", "-p", json.dumps(request))

    others = NAMES[:-1]
    eventually(
        lambda: all(look_at_devices(story.stage.kubectl)[name].state == "Held" for name in others), "all are held"
    )
    views = look_at_devices(story.stage.kubectl)
    assert {views[name].rollback_result for name in others} == {"Complete"}
    assert {views[name].running for name in others} == {"step-000180"}


def test_deleting_the_job_stops_the_devices(story: Story) -> None:
    story.stage.kubectl("delete", "trainingjob", JOB, "-n", FLEET)

    eventually(
        lambda: {twin.phase for twin in read_twins(story.stage.broker, NAMES).values()} == {Phase.IDLE},
        "every device is idle",
    )


def test_another_network_of_the_zoo_is_trained_by_its_name(story: Story) -> None:
    device = NAMES[0]
    recipe = Recipe(model="resnet8", epochs=2, batch_size=16, learning_rate=0.05)
    models = story.stage.config_file(device).parent / "models"
    base = base_model.train(load_mnist().take(np.arange(0, 5000, 10)), recipe, models / "resnet8.safetensors", quiet)
    job = yaml.safe_load(job_manifest(base.sha256, epochs=1, name="zoo"))
    job["spec"]["model"] |= {"zoo": "resnet8", "weights": {"uri": "file:resnet8.safetensors", "sha256": base.sha256}}
    job["spec"]["method"] = {"bias": {}}
    job["spec"]["training"]["batchSize"] = 8
    job["spec"]["devices"]["selector"] = {
        "matchExpressions": [{"key": NAME_LABEL, "operator": "In", "values": [device]}]
    }
    story.stage.kubectl("label", "device", device, "-n", FLEET, f"{NAME_LABEL}={device}")

    story.stage.kubectl("apply", "-f", "-", input=json.dumps(job))

    eventually(
        lambda: columns(story, "trainingjobs")["zoo"].split()[1:3] == ["Succeeded", "1"],
        "the job succeeds on that device alone",
        timeout_seconds=120,
    )
    progress = read_twins(story.stage.broker, [device])[device].progress
    assert progress is not None
    assert progress.step == progress.total_steps > 0
    assert [peak.measured_bytes for peak in progress.peaks] == [peak.planned_bytes for peak in progress.peaks]
    assert any(name.startswith("resnet8-bias-") for name in columns(story, "executionplans"))
