"""Small worlds for decisions: a job, devices and programs with everything about them that a test does not care for."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

from hedgerow_operator.actions import Action, Dispatch, RememberJob, SetDeviceStatus, SetJobStatus
from hedgerow_operator.statuses import job_status
from hedgerow_operator.world import Device, Job, ProgramState, Ready, World
from hedgerow_plans.plan import KERNEL_TABLE, PROGRAM_SCHEMA
from hedgerow_plans.protocol.messages import Phase, ProgramReference, Reported, State
from hedgerow_plans.resources.conditions import Condition
from hedgerow_plans.resources.device import DeviceSpec
from hedgerow_plans.resources.device_class import DeviceClassSpec
from hedgerow_plans.resources.training_job import TrainingJobSpec

NOW = 1_800_000_000.0
FLEET = "north"
_T = TypeVar("_T")


def job_spec(**changes: Any) -> TrainingJobSpec:
    values: dict[str, Any] = {
        "model": {"zoo": "mlp", "weights": {"uri": "file:digits.safetensors", "sha256": "a" * 64}},
        "dataset": "digits",
        "method": {"lora": {"rank": 4}},
        "training": {"epochs": 2, "batchSize": 16, "optimizer": {"sgd": {"learningRate": "0.05"}}},
        "devices": {"selector": {}},
    }
    return TrainingJobSpec.model_validate(values | changes)


def job(name: str = "drift", *, created: str = "2026-11-17T10:00:00Z", generation: int = 1, **spec: Any) -> Job:
    return Job(name=name, uid=f"uid-{name}", generation=generation, created=created, spec=job_spec(**spec))


def device(name: str, *, approved: bool = True, online: bool = True, **changes: Any) -> Device:
    spec = DeviceSpec.model_validate(
        {"class": changes.pop("device_class", "board"), "approved": approved} | changes.pop("spec", {})
    )
    state = State(
        state="online" if online else "lost",
        epoch=1,
        device_class="board",
        agent_version="0.1.0",
        program_schema=changes.pop("schema", PROGRAM_SCHEMA),
        kernel_table=changes.pop("kernel_table", KERNEL_TABLE),
        backend="numpy",
    )
    return Device(name=name, labels=changes.pop("labels", {}), spec=spec, state=state, **changes)


def reported(phase: Phase, *, of: str = "drift", generation: int = 1, **changes: Any) -> Reported:
    values: dict[str, Any] = {
        "epoch": 1,
        "observed_sequence": 0,
        "job_uid": f"uid-{of}",
        "generation": generation,
        "phase": phase,
        "reason": "Testing",
    }
    return Reported.model_validate(values | changes)


def progress(step: int, total: int = 100, **changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "step": step,
        "total_steps": total,
        "rung": 0,
        "rungs": 3,
        "switches_down": 0,
        "switches_up": 0,
        "memory": {"planned_bytes": 1000, "measured_bytes": 1000, "budget_bytes": 2000},
        "energy": {"microjoules": 7, "source": "modelled"},
    }
    return values | changes


def ready(plan: str = "mlp-lora-board-0123abcd", digest: str = "c" * 64) -> Ready:
    return Ready(plan, ProgramReference(digest=digest, parts=1, compressed_bytes=10, encoded_bytes=20))


BOARD = DeviceClassSpec.model_validate(
    {"memory": {"budget": "256Ki"}, "compute": {"flopsPerSecond": 10**9, "picojoulesPerFlop": 1000}}
)


def world(
    jobs: Iterable[Job] = (),
    devices: Iterable[Device] = (),
    programs: dict[tuple[str, str], ProgramState] | None = None,
    **changes: Any,
) -> World:
    """Return a world in which every job has its program for the class `board`, unless told otherwise."""
    listed = tuple(jobs)
    known: dict[tuple[str, str], ProgramState] = {(one.uid, "board"): ready() for one in listed}
    values: dict[str, Any] = {"classes": {"board": BOARD}, "models": frozenset({"mlp", "cnn-small"})} | changes
    return World(
        fleet=FLEET,
        jobs=listed,
        devices=tuple(devices),
        programs=known if programs is None else programs,
        **values,
    )


def all_of(actions: Iterable[Action], kind: type[_T]) -> list[_T]:
    return [action for action in actions if isinstance(action, kind)]


def status_of(actions: Iterable[Action], name: str = "drift") -> SetJobStatus:
    return next(status for status in all_of(actions, SetJobStatus) if status.job == name)


def condition_of(actions: Iterable[Action], kind: str, name: str = "drift") -> Condition:
    return next(condition for condition in status_of(actions, name).conditions if condition.type == kind)


def told(actions: Iterable[Action], name: str) -> Dispatch:
    return next(dispatch for dispatch in all_of(actions, Dispatch) if dispatch.device == name)


def shown(actions: Iterable[Action], name: str) -> SetDeviceStatus:
    return next(status for status in all_of(actions, SetDeviceStatus) if status.device == name)


def after(before: World, actions: Iterable[Action]) -> World:
    """Return the world in which the decision was carried out: memories written, statuses shown."""
    listed = list(actions)
    jobs = {one.name: one for one in before.jobs}
    for remembered in all_of(listed, RememberJob):
        jobs[remembered.job] = replace(jobs[remembered.job], memory=remembered.memory)
    for status in all_of(listed, SetJobStatus):
        jobs[status.job] = replace(jobs[status.job], status=job_status(status))
    memories = {dispatch.device: dispatch.memory for dispatch in all_of(listed, Dispatch)}
    devices = tuple(replace(one, memory=memories.get(one.name, one.memory)) for one in before.devices)
    return replace(before, jobs=tuple(jobs.values()), devices=devices)
