"""Bad nights: the operator killed, the broker robbed of its store, MQTT gone; and manifests nobody can run."""

from typing import Any

import psutil
import pytest

from hedgerow_plans.models import zoo
from hedgerow_plans.protocol.messages import Phase
from hedgerow_plans.protocol.topics import Channel
from servers.problems import ServerProblem
from support.eventually import eventually
from support.fake_device import FakeDevice
from support.operator_fixtures import OperatorUnderTest, StartOperator, device_class, training_job

pytestmark = [pytest.mark.cluster, pytest.mark.broker]


@pytest.fixture(scope="module")
def operator(start_operator: StartOperator) -> OperatorUnderTest:
    started = start_operator(HEDGEROW_AUTO_APPROVE="true", HEDGEROW_MAX_DEVICES="4")
    started.apply(device_class(class_name(started)))
    return started


@pytest.fixture(scope="module")
def device(operator: OperatorUnderTest) -> FakeDevice:
    """One device at work, which the tests share in the order of the file."""
    found = operator.device("pump-01", class_name(operator))
    operator.apply(training_job("night"))
    eventually(lambda: found.assignment, "the device has work")
    return found


def class_name(operator: OperatorUnderTest) -> str:
    return f"board-{operator.namespace}"


def annotation(operator: OperatorUnderTest, device: FakeDevice) -> str:
    return str(operator.get("device", device.name)["metadata"]["annotations"]["hedgerow.dev/memory"])


def test_a_killed_operator_says_the_same_again_and_then_counts_on(
    operator: OperatorUnderTest, device: FakeDevice
) -> None:
    device.report(phase=Phase.TRAINING)
    before, remembered = device.desired_bytes, annotation(operator, device)
    plans = operator.kubectl("get", "executionplans", "-n", operator.namespace, "-o", "name").stdout
    operator.kill()
    device.forget()
    operator.start()
    eventually(lambda: device.desired_bytes, "the document is published again")
    assert device.desired_bytes == before, "an unchanged document keeps its number and its very bytes"
    assert annotation(operator, device) == remembered
    assert device.assignment is not None
    reference = device.assignment.program
    eventually(lambda: device.program(reference), "the program is published again")
    assert operator.kubectl("get", "executionplans", "-n", operator.namespace, "-o", "name").stdout == plans
    loaded = f'hedgerow_planning_seconds_count{{class="{class_name(operator)}",outcome="loaded"}} 1.0'
    assert loaded in operator.answer("/metrics")[1], "it was read back from the cluster, not planned again"

    operator.patch("deviceclass.hedgerow.dev", class_name(operator), {"spec": {"memory": {"allowance": "40Ki"}}})
    eventually(lambda: device.desired and device.desired.allowance_bytes == 40 * 1024, "the allowance arrives")
    assert device.sequences == sorted(device.sequences)
    assert device.sequences[-1] > device.sequences[0]
    assert not device.refusals


def test_a_job_deleted_while_the_operator_is_away_is_stopped_when_it_is_back(
    operator: OperatorUnderTest, device: FakeDevice
) -> None:
    forgotten = operator.device("forgotten", class_name(operator), labels={"site": "nowhere"})
    eventually(lambda: forgotten.desired, "it is told that there is nothing to do")
    assert device.assignment is not None
    reference = device.assignment.program
    assert device.program(reference)
    operator.kill()
    operator.kubectl("delete", "trainingjob", "night", "-n", operator.namespace, "--timeout=10s")
    operator.kubectl("delete", "device", "forgotten", "-n", operator.namespace, "--timeout=10s")
    forgotten.birth(class_name(operator), state="offline")
    operator.start()
    eventually(lambda: device.desired and device.desired.assignment is None, "the device is told to stop")
    eventually(lambda: device.program(reference) is None, "the program that nobody uses is cleared")
    eventually(lambda: forgotten.desired_bytes == b"", "the document of a device that is gone is cleared")
    assert not device.refusals
    operator.apply(training_job("night"))
    eventually(lambda: device.assignment, "a new job of that name is a new job")


def test_a_broker_without_its_store_gets_everything_again(operator: OperatorUnderTest, device: FakeDevice) -> None:
    before = device.desired_bytes
    assert device.assignment is not None
    reference = device.assignment.program
    operator.broker.kill()
    operator.broker.delete_store()
    device.forget()
    operator.broker.start()
    eventually(lambda: device.desired_bytes == before, "the document is there again")
    eventually(lambda: device.program(reference), "the program is there again")
    assert not device.refusals


def test_health_fails_while_mqtt_is_dead_and_recovers(operator: OperatorUnderTest) -> None:
    assert operator.answer("/healthz") == (200, "ok\n")
    operator.broker.kill()
    eventually(lambda: operator.answer("/healthz")[0] == 503, "the operator is not healthy")
    text = operator.answer("/healthz")[1]
    assert f"The broker at {operator.broker.host}:{operator.broker.port} is not connected." in text
    assert operator.answer("/readyz")[0] == 503
    operator.broker.start()
    eventually(lambda: operator.answer("/healthz")[0] == 200, "it is healthy again")


def test_a_lost_device_is_shown_as_lost_and_an_old_will_is_ignored(operator: OperatorUnderTest) -> None:
    watched = operator.device("flaky", class_name(operator), epoch=7)
    eventually(lambda: operator.status("device", "flaky").get("connection") == "online", "it is there")
    watched.say_raw(Channel.STATE, b'{"state": "lost", "epoch": 6}')
    watched.report(phase=Phase.IDLE)
    eventually(lambda: operator.status("device", "flaky").get("phase") == "Idle", "what came after has arrived")
    assert operator.status("device", "flaky")["connection"] == "online"
    watched.say_raw(Channel.STATE, b'{"state": "lost", "epoch": 7}')
    eventually(lambda: operator.status("device", "flaky").get("state") == "Lost", "it is lost")


def test_the_number_of_devices_is_capped(operator: OperatorUnderTest) -> None:
    for number in range(4):
        operator.device(f"many-{number}", class_name(operator))
    eventually(lambda: "hedgerow_devices_refused_total 2.0" in operator.answer("/metrics")[1], "two are refused")
    listed = operator.kubectl("get", "devices", "-n", operator.namespace, "-o", "name").stdout.split()
    assert len(listed) == 4
    operator.kubectl("delete", "device", "many-1", "-n", operator.namespace, "--timeout=10s")
    eventually(lambda: operator.get("device", "many-2") or operator.get("device", "many-3"), "one takes its place")
    assert "hedgerow_devices_refused_total 2.0" in operator.answer("/metrics")[1], "waiting is no new refusal"


IMPOSSIBLE: dict[str, tuple[dict[str, Any], str, str]] = {
    "unknown-model": (
        {"model": {"zoo": "resnet-9000", "weights": {"uri": "file:w.safetensors", "sha256": "a" * 64}}},
        "UnknownModel",
        f"The zoo has no model 'resnet-9000'; set spec.model.zoo to one of: {', '.join(sorted(zoo.names()))}.",
    ),
    "no-device": (
        {"devices": {"selector": {"matchLabels": {"site": "moon"}}}},
        "NoDeviceMatches",
        "has the labels that spec.devices.selector asks for (site=moon); label devices, or change the selector.",
    ),
    "huge-batch": (
        {
            "training": {"epochs": 1, "batchSize": 16, "optimizer": {"sgd": {"learningRate": "0.1"}}},
            "method": {"full": {}},
        },
        "BudgetTooSmall",
        "spec.memory.budget is 16Ki (16384 bytes); nothing can run below ",
    ),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_manifest_that_cannot_run_is_explained_with_the_numbers(operator: OperatorUnderTest, name: str) -> None:
    spec, reason, text = IMPOSSIBLE[name]
    if reason == "BudgetTooSmall":
        operator.apply(device_class(f"small-{operator.namespace}", budget="16Ki"))
        operator.patch("device", "flaky", {"spec": {"class": f"small-{operator.namespace}"}})
        operator.kubectl("label", "device", "flaky", "size=small", "-n", operator.namespace)
        spec = spec | {"devices": {"selector": {"matchLabels": {"size": "small"}}}}
    operator.apply(training_job(name, **spec))
    planned = operator.explained(name, "Planned", reason)
    assert text in planned["message"]
    assert planned["observedGeneration"] == 1


def test_a_class_that_is_edited_or_created_later_saves_the_job(operator: OperatorUnderTest) -> None:
    small, missing = f"small-{operator.namespace}", f"missing-{operator.namespace}"
    operator.patch("deviceclass.hedgerow.dev", small, {"spec": {"memory": {"budget": "256Ki"}}})
    operator.explained("huge-batch", "Planned", "ProgramsReady")
    operator.patch("device", "many-0", {"spec": {"class": missing}})
    operator.kubectl("label", "device", "many-0", "kind=odd", "-n", operator.namespace)
    operator.apply(training_job("odd", devices={"selector": {"matchLabels": {"kind": "odd"}}}))
    said = operator.explained("odd", "Planned", "UnknownDeviceClass")
    assert said["message"] == (f"There is no DeviceClass {missing!r}; create it, or change spec.class of its devices.")
    operator.apply(device_class(missing))
    operator.explained("odd", "Planned", "ProgramsReady")


def test_a_planning_process_that_was_killed_is_replaced(operator: OperatorUnderTest) -> None:
    assert operator.process is not None
    workers = [
        child for child in psutil.Process(operator.process.pid).children() if "spawn_main" in str(child.cmdline())
    ]
    assert workers, "it planned before, so there is a process for it"
    for worker in workers:
        worker.kill()
    selector = {"matchLabels": {"kind": "odd"}}
    operator.apply(training_job("after", method={"last": {}}, devices={"selector": selector}))
    operator.explained("after", "Planned", "ProgramsReady")


def test_a_negative_number_of_epochs_is_refused_by_the_api_server(operator: OperatorUnderTest) -> None:
    with pytest.raises(ServerProblem, match=r"spec\.training\.epochs.*greater than or equal to 1"):
        operator.apply(
            training_job(
                "negative",
                training={"epochs": -1, "batchSize": 16, "optimizer": {"sgd": {"learningRate": "0.1"}}},
            )
        )


def test_it_stops_cleanly_when_asked_to(operator: OperatorUnderTest) -> None:
    assert operator.process is not None
    operator.stop()
    assert operator.process._keeper.returncode == 0
    log = operator.process.log_text()
    assert "Traceback" not in log, log[-3000:]
    assert not operator.is_running
