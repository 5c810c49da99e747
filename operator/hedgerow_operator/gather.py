"""A snapshot of one fleet for one decision, taken from the registry and the programs; reads, and changes nothing."""

from hedgerow_operator.decide.generations import remembered
from hedgerow_operator.planning.programs import Place, Programs
from hedgerow_operator.registry import DeviceEntry, Registry
from hedgerow_operator.world import Device, Job, ProgramState, World
from hedgerow_plans.models import zoo

MODELS = frozenset(zoo.names())


def gather(fleet: str, registry: Registry, programs: Programs) -> World:
    """Return a fleet as it is at this moment."""
    jobs = tuple(job for (namespace, _), job in registry.jobs.items() if namespace == fleet)
    devices = tuple(_devices(fleet, registry))
    return World(
        fleet=fleet,
        jobs=jobs,
        devices=devices,
        classes=dict(registry.classes),
        models=MODELS,
        programs=_programs(fleet, jobs, {device.spec.device_class for device in devices}, programs),
    )


def place_of(fleet: str, job: Job, device_class: str) -> Place | None:
    """Return where the program of a job's present training for a class is kept."""
    if job.spec is None:
        return None
    return Place(fleet, job.uid, remembered(job, job.spec).generation, device_class)


def _devices(fleet: str, registry: Registry) -> list[Device]:
    named = [(name, entry) for (namespace, name), entry in registry.devices.items() if namespace == fleet]
    found = [_device(name, entry) for name, entry in sorted(named, key=lambda pair: pair[0])]
    return [device for device in found if device is not None]


def _device(name: str, entry: DeviceEntry) -> Device | None:
    if entry.spec is None:
        return None
    return Device(
        name=name,
        labels=entry.labels,
        spec=entry.spec,
        state=entry.state,
        reported=entry.twin(),
        memory=entry.memory,
    )


def _programs(
    fleet: str, jobs: tuple[Job, ...], classes: set[str], programs: Programs
) -> dict[tuple[str, str], ProgramState]:
    found = {}
    for job in jobs:
        for device_class in classes:
            place = place_of(fleet, job, device_class)
            state = programs.state(place) if place else None
            if state is not None:
                found[job.uid, device_class] = state
    return found
