"""A job from `kubectl apply` to a rolled-back device, with the real operator, API server and broker."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hedgerow_plans import codec
from hedgerow_plans.protocol.messages import Phase, RollbackResult
from hedgerow_plans.protocol.topics import Channel
from hedgerow_plans.verify import verify_program
from support.eventually import eventually
from support.fake_device import FakeDevice
from support.operator_fixtures import OperatorUnderTest, StartOperator, device_class, training_job

pytestmark = [pytest.mark.cluster, pytest.mark.broker]


@pytest.fixture(scope="module")
def operator(start_operator: StartOperator) -> OperatorUnderTest:
    started = start_operator(HEDGEROW_DEVICE_METRICS="true")
    started.apply(device_class(class_name(started)))
    return started


def class_name(operator: OperatorUnderTest) -> str:
    return f"board-{operator.namespace}"  # classes belong to the whole cluster


def progress(step: int = 10, total: int = 100, **changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "step": step,
        "total_steps": total,
        "rung": 1,
        "rungs": 4,
        "switches_down": 1,
        "switches_up": 0,
        "accuracy_before": 0.71,
        "accuracy_now": 0.9,
        "memory": {"planned_bytes": 52032, "measured_bytes": 52032, "budget_bytes": 60000},
        "energy": {"microjoules": 5_000_000, "source": "modelled"},
    }
    return values | changes


def checkpoint(step: int) -> dict[str, Any]:
    return {"id": f"step-{step:06}", "step": step, "sha256": "b" * 64, "size_bytes": 4096, "accuracy": 0.9}


def assigned(operator: OperatorUnderTest, device: FakeDevice, job: str) -> None:
    eventually(lambda: device.assignment and device.assignment.job_name == job, f"{device.name} works for {job}")


def asked_to_roll_back(device: FakeDevice) -> None:
    eventually(lambda: device.desired is not None and device.desired.rollback is not None, "the request arrives")


def rollback_result(operator: OperatorUnderTest, device: str) -> str:
    return str(operator.status("device", device).get("rollback", {}).get("result"))


def test_a_device_that_introduces_itself_waits_for_approval(operator: OperatorUnderTest) -> None:
    device = operator.device("shy", class_name(operator), labels={"site": "west", "bad label!": "x"})
    made = eventually(lambda: operator.get("device", "shy"), "the device is registered")
    assert made["spec"] == {"approved": False, "class": class_name(operator)}
    assert made["metadata"]["labels"] == {"device.hedgerow.dev/site": "west"}
    operator.apply(training_job("for-shy", site="west"))
    operator.explained("for-shy", "Planned", "NoDeviceApproved")
    eventually(lambda: operator.status("device", "shy").get("state") == "Unapproved", "the device says so")
    assert device.desired is None

    done = operator.plugin("approve", "device/shy")

    assert done.returncode == 0
    assert done.stdout == "device/shy: approved; it gets work from now on.\n"
    assigned(operator, device, "for-shy")


def test_what_a_device_reported_before_it_was_registered_is_not_lost(operator: OperatorUnderTest) -> None:
    early = operator.device("early")
    early.report(phase=Phase.IDLE, reason="Early")
    early.birth(class_name(operator), labels={"site": "nowhere"})
    eventually(lambda: operator.status("device", "early").get("phase") == "Idle", "the report is shown")


def test_a_job_runs_from_apply_to_success(operator: OperatorUnderTest) -> None:
    device = operator.approved_device("pump-01", class_name(operator), labels={"site": "run"})
    operator.apply(training_job("run", site="run"))
    assigned(operator, device, "run")
    assert device.assignment is not None

    # The program is on the broker, whole, and verifies.
    reference = device.assignment.program
    program = codec.decode(eventually(lambda: device.program(reference) or b"", "every part of the program arrives"))
    assert not verify_program(program, 256 * 1024)
    assert len(program.rungs) >= 3
    # It is in the cluster as well, owned by the job.
    (plan,) = eventually(lambda: list(operator.status("trainingjob", "run").get("plans", [])), "its plans are named")
    stored = operator.get("executionplan", plan["executionPlan"])
    assert stored["spec"]["digest"] == plan["digest"] == reference.digest
    assert "run" in {owner["name"] for owner in stored["metadata"]["ownerReferences"]}
    for part in stored["spec"]["parts"]:
        assert operator.get("configmap", part)["metadata"]["ownerReferences"][0]["name"] == plan["executionPlan"]

    listed = operator.kubectl("get", "executionplan", plan["executionPlan"], "-n", operator.namespace).stdout
    assert stored["spec"]["gapPercent"] + "%" in listed
    # What is proven stands beside every rung, and the gap is the worst of them.
    rungs = stored["spec"]["rungs"]
    assert all(0 < rung["leastMicrojoules"] <= rung["stepMicrojoules"] for rung in rungs)
    assert all(0 < rung["workingSetBytes"] <= rung["maxLiveBytes"] <= rung["peakBytes"] for rung in rungs)
    assert float(stored["spec"]["gapPercent"]) == max(float(rung["gapPercent"]) for rung in rungs)

    device.report(phase=Phase.TRAINING, progress=progress(50), checkpoints=[checkpoint(50)])
    eventually(lambda: operator.status("trainingjob", "run").get("progressPercent") == 50, "progress is shown")
    shown = operator.kubectl("get", "trainingjob", "run", "-n", operator.namespace).stdout
    assert "Training" in shown
    assert "0.71→0.90" in shown
    eventually(lambda: operator.status("device", "pump-01").get("state") == "Training", "the device shows it")
    row = operator.kubectl("get", "device", "pump-01", "-n", operator.namespace).stdout
    assert "2/4" in row
    assert "step-000050" in row

    device.report(phase=Phase.COMPLETED, progress=progress(100, accuracy_after=0.95), checkpoints=[checkpoint(100)])
    eventually(lambda: operator.condition("run", "Succeeded").get("status") == "True", "the job succeeds")
    status = operator.status("trainingjob", "run")
    assert status["state"] == "Succeeded"
    assert status["devices"]["completed"] == 1
    assert status["completionTime"]
    assert status["accuracy"] == {"before": "0.71", "now": "0.95"}
    events = operator.kubectl("get", "events", "-n", operator.namespace, "-o", "wide").stdout
    assert "JobSucceeded" in events


def test_a_device_is_rolled_back_by_plugin_and_released(operator: OperatorUnderTest) -> None:
    device = operator.approved_device("pump-07", class_name(operator), labels={"site": "back"})
    operator.apply(training_job("back", site="back"))
    assigned(operator, device, "back")
    device.report(phase=Phase.TRAINING, progress=progress(50), checkpoints=[checkpoint(50)])

    done = operator.plugin("rollback", "device/pump-07", "--to", "base")
    assert done.returncode == 0, done.stderr
    assert "device/pump-07: asked to go back to base (request " in done.stdout
    request = operator.get("device", "pump-07")["spec"]["rollback"]
    asked_to_roll_back(device)
    assert device.desired is not None
    assert device.desired.rollback is not None
    assert device.desired.rollback.to == "base"
    assert device.desired.rollback.request_id == request["requestId"]
    assert not device.desired.rollback.released
    eventually(lambda: rollback_result(operator, "pump-07") == "Pending", "it is pending")

    answer = {"request_id": request["requestId"], "result": RollbackResult.COMPLETE, "running": "base"}
    device.report(phase=Phase.HELD, progress=progress(50), rollback=answer, running="base")
    eventually(lambda: rollback_result(operator, "pump-07") == "Complete", "it is complete")
    eventually(lambda: operator.status("trainingjob", "back")["devices"]["heldOrRolledBack"] == 1, "the job counts it")
    assert operator.condition("back", "Succeeded")["reason"] == "AllDevicesHeld"

    released = operator.plugin("release", "device/pump-07")
    assert released.returncode == 0, released.stderr
    eventually(
        lambda: device.desired and device.desired.rollback and device.desired.rollback.released, "it is released"
    )
    assert device.assignment is not None, "a released device still has its work"
    assert device.assignment.generation == 1, "a rollback is not a new training"


def test_the_plugin_waits_for_the_devices_answer(operator: OperatorUnderTest) -> None:
    device = operator.approved_device("slow", class_name(operator), labels={"site": "slow"})
    eventually(lambda: device.desired, "it was told something")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(operator.plugin, "rollback", "device/slow", "--to", "step-000050", "--wait")
        asked_to_roll_back(device)
        assert device.desired is not None
        assert device.desired.rollback is not None
        answer = {
            "request_id": device.desired.rollback.request_id,
            "result": RollbackResult.UNABLE,
            "running": "base",
            "message": "There is no checkpoint step-000050.",
        }
        device.report(phase=Phase.IDLE, rollback=answer)
        done = waiting.result(60)
    assert done.returncode == 1, "a rollback that could not be done is a failure"
    assert done.stdout.endswith("device/slow: Unable, runs base. There is no checkpoint step-000050.\n")


def test_a_whole_job_is_rolled_back_by_patching_a_field(operator: OperatorUnderTest) -> None:
    devices = [operator.approved_device(f"all-{n}", class_name(operator), labels={"site": "all"}) for n in (1, 2)]
    operator.apply(training_job("all", site="all"))
    for device in devices:
        assigned(operator, device, "all")
    operator.patch("trainingjob", "all", {"spec": {"rollback": {"request": {"to": "last", "requestId": "r-1"}}}})
    for device in devices:
        asked_to_roll_back(device)
        answer = {"request_id": "r-1", "result": RollbackResult.NO_STATE_CHANGE, "running": "base"}
        device.report(phase=Phase.HELD, rollback=answer)
    condition = operator.explained("all", "RolledBack", "Complete")
    assert condition["message"] == "2 of 2 devices obeyed request r-1 (to last)."
    assert operator.status("trainingjob", "all")["state"] == "RolledBack"


def test_deleting_a_job_stops_its_devices_and_takes_its_program_away(operator: OperatorUnderTest) -> None:
    device = operator.approved_device("gone", class_name(operator), labels={"site": "gone"})
    operator.apply(training_job("gone", site="gone", method={"last": {}}))
    assigned(operator, device, "gone")
    assert device.assignment is not None
    reference = device.assignment.program
    eventually(lambda: device.program(reference), "the program is there")
    operator.kubectl("delete", "trainingjob", "gone", "-n", operator.namespace, "--timeout=10s")
    eventually(lambda: device.desired and device.desired.assignment is None, "the device is told to stop")
    eventually(lambda: device.program(reference) is None, "the program is cleared")
    assert not device.refusals

    operator.kubectl("delete", "device", "gone", "-n", operator.namespace, "--timeout=10s")
    eventually(lambda: device.desired_bytes == b"", "the document of a deleted device is cleared")


def test_jobs_that_need_the_same_program_share_it_and_the_last_takes_it_along(operator: OperatorUnderTest) -> None:
    devices = [
        operator.approved_device(f"twin-{n}", class_name(operator), labels={"site": f"twin-{n}"}) for n in (1, 2)
    ]
    for number, device in enumerate(devices, start=1):
        operator.apply(training_job(f"twin-{number}", site=f"twin-{number}", method={"full": {}}))
        assigned(operator, device, f"twin-{number}")
    (plan,) = eventually(lambda: list(operator.status("trainingjob", "twin-2").get("plans", [])), "its plan is named")
    name = plan["executionPlan"]
    owners = operator.get("executionplan", name)["metadata"]["ownerReferences"]
    assert {owner["name"] for owner in owners} == {"twin-1", "twin-2"}
    operator.kubectl("delete", "trainingjob", "twin-1", "-n", operator.namespace)
    eventually(lambda: devices[0].desired and devices[0].desired.assignment is None, "the first has stopped")
    assert operator.get("executionplan", name), "the other job still needs it"
    operator.kubectl("delete", "trainingjob", "twin-2", "-n", operator.namespace)
    eventually(lambda: not operator.get("executionplan", name), "nobody needs it any more")
    eventually(lambda: not operator.get("configmap", f"{name}-0"), "its bytes go with it")


def test_one_device_works_for_one_job_at_a_time(operator: OperatorUnderTest) -> None:
    device = operator.approved_device("busy", class_name(operator), labels={"site": "busy"})
    operator.apply(training_job("first", site="busy"))
    assigned(operator, device, "first")
    operator.apply(training_job("second", site="busy"))
    waiting = operator.explained("second", "Progressing", "DevicesBusy")
    assert "busy (first)" in waiting["message"]
    operator.patch("trainingjob", "first", {"spec": {"suspend": True}})
    assigned(operator, device, "second")


def test_telemetry_feeds_the_fleets_series(operator: OperatorUnderTest) -> None:
    device = operator.approved_device("metered", class_name(operator), labels={"site": "metered"})
    device.sample(epoch=1, phase=Phase.TRAINING, progress=progress(5, loss=0.5), checkpoints_written=2, rollbacks=1)
    device.say_raw(Channel.REPORTED, b'{"kind": "nonsense"}')

    def metric(line: str) -> bool:
        return line in operator.answer("/metrics")[1]

    labels = f'class="{class_name(operator)}",fleet="{operator.namespace}"'
    by_device = f'class="{class_name(operator)}",device="metered",fleet="{operator.namespace}"'
    eventually(lambda: metric(f"hedgerow_fleet_loss{{{labels}}} 0.5"), "the loss is there")
    eventually(lambda: metric("hedgerow_mqtt_malformed_total 1.0"), "nonsense is counted")
    assert metric(f"hedgerow_device_arena_measured_bytes{{{by_device}}} 52032.0")
    assert metric("hedgerow_api_writes_total{")
    assert metric(f"hedgerow_fleet_checkpoints{{{labels}}} 2.0")


def test_commands_say_what_is_wrong(operator: OperatorUnderTest) -> None:
    missing = operator.plugin("rollback", "device/nobody", "--to", "last")
    assert missing.returncode == 1
    assert f"There is no device/nobody in namespace {operator.namespace}" in missing.stderr
    nowhere = operator.plugin("rollback", "device/nobody", "--to", "yesterday")
    assert "'yesterday' is nowhere to go back to; write last, previous, base" in nowhere.stderr
    unclear = operator.plugin("release", "nobody")
    assert unclear.returncode == 2
    assert "write device/NAME" in unclear.stderr
