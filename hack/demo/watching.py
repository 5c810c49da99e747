"""Looking at the fleet through kubectl, as a person would."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from demo.cast import FLEET, JOB
from servers.commands import Command
from servers.problems import ServerProblem


@dataclass(frozen=True, slots=True)
class DeviceView:
    """What `kubectl get device` says about one device."""

    name: str
    device_class: str
    state: str
    message: str
    rung: int | None
    rungs: int | None
    planned_bytes: int | None
    measured_bytes: int | None
    budget_bytes: int | None
    progress_percent: int | None
    accuracy_before: float | None
    accuracy_now: float | None
    accuracy_after: float | None
    energy_microjoules: int | None
    energy_source: str
    checkpoint: str
    running: str
    rollback_result: str


def look_at_devices(kubectl: Command) -> dict[str, DeviceView]:
    """Return every device by name."""
    listed = json.loads(kubectl("get", "devices", "-n", FLEET, "-o", "json").stdout)
    return {view.name: view for view in map(_view, listed["items"])}


def look_at_fleet(kubectl: Command) -> tuple[dict[str, DeviceView], Mapping[str, Any]]:
    """Return every device by name, and the job's status; nothing of it where there is no job yet."""
    listed = json.loads(kubectl("get", "devices,trainingjobs", "-n", FLEET, "-o", "json").stdout)["items"]
    devices = map(_view, (item for item in listed if item["kind"] == "Device"))
    jobs = {item["metadata"]["name"]: item.get("status", {}) for item in listed if item["kind"] == "TrainingJob"}
    return {view.name: view for view in devices}, jobs.get(JOB, {})


def wait_until(sentence: str, holds: Callable[[], bool], timeout_seconds: float, every_seconds: float = 0.5) -> None:
    """Wait until something holds, or say what was waited for in vain."""
    deadline = time.monotonic() + timeout_seconds
    while not holds():
        if time.monotonic() > deadline:
            raise ServerProblem(f"After {timeout_seconds:g} s it is still not so that {sentence}.")
        time.sleep(every_seconds)


def _view(device: Mapping[str, Any]) -> DeviceView:
    status = device.get("status", {})
    memory, accuracy, energy = (status.get(name) or {} for name in ("memory", "accuracy", "energy"))
    return DeviceView(
        name=device["metadata"]["name"],
        device_class=device["spec"]["class"],
        state=status.get("state", ""),
        message=status.get("message", ""),
        rung=status.get("rung"),
        rungs=status.get("rungs"),
        planned_bytes=memory.get("planned"),
        measured_bytes=memory.get("measured"),
        budget_bytes=memory.get("budget"),
        progress_percent=status.get("progressPercent"),
        accuracy_before=_number(accuracy.get("before")),
        accuracy_now=_number(accuracy.get("now")),
        accuracy_after=_number(accuracy.get("after")),
        energy_microjoules=energy.get("microjoules"),
        energy_source=energy.get("source", ""),
        checkpoint=status.get("checkpoint", ""),
        running=status.get("running", ""),
        rollback_result=(status.get("rollback") or {}).get("result", ""),
    )


def _number(text: str | None) -> float | None:
    return float(text) if text else None
