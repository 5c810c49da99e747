"""The heart of the operator: `decide(world, now) -> actions`, pure.

It knows nothing of Kubernetes, kopf or MQTT, and keeps nothing between two calls: the same world gives the same
actions, so that it may run as often as anybody likes. The same decisions serve any control plane that
can fill a `World`.
"""

from collections.abc import Iterable, Sequence

from hedgerow_operator.actions import Action, CheckAgain, PlanProgram, RememberJob, SetDeviceStatus
from hedgerow_operator.decide.claims import OpenJob, claim, home
from hedgerow_operator.decide.dispatch import dispatch
from hedgerow_operator.decide.folding import fold
from hedgerow_operator.decide.generations import remembered, with_programs
from hedgerow_operator.decide.planned import unknown_model, wanted_classes
from hedgerow_operator.decide.standing import Member, Stand, stand_of
from hedgerow_operator.decide.status import invalid, judge, seconds
from hedgerow_operator.decide.tidings import tell
from hedgerow_operator.world import Device, Job, World

Claims = dict[str, OpenJob | None]


def decide(world: World, now: float) -> list[Action]:
    """Return what should be done about a fleet, in this order."""
    # 1. What each job is, and whether it still wants work done.
    entries = [_open(job, world) for job in sorted(world.jobs, key=lambda job: (job.created, job.name))]
    jobs = [entry for entry in entries if entry is not None]
    actions: list[Action] = [
        RememberJob(entry.job.name, entry.memory) for entry in jobs if entry.memory != entry.job.memory
    ]
    # 2. Who works for whom.
    claims: Claims = {device.name: claim(device, jobs, world.programs) for device in world.devices}
    # 3. Each job: programs it needs, and its status.
    actions += [invalid(job, now) for job in world.jobs if job.spec is None]
    for entry in jobs:
        actions += _decide_job(entry, _members(entry, claims, world), world, now)
    # 4. Each device: what it is told, and its status.
    for device in world.devices:
        actions += _decide_device(device, claims[device.name], jobs, world, now)
    return actions


def _open(job: Job, world: World) -> OpenJob | None:
    if job.spec is None:
        return None
    programs = {name: state for (uid, name), state in world.programs.items() if uid == job.uid}
    memory = with_programs(remembered(job, job.spec), programs)
    finished = is_finished(job, memory.training_digest)
    return OpenJob(job, job.spec, memory, wants_work=not (job.spec.suspend or finished or unknown_model(job, world)))


def is_finished(job: Job, training_digest: str) -> bool:
    """Whether this training of the job has succeeded or failed for good."""
    return job.status.completion_time is not None and job.status.training_digest == training_digest


def _members(entry: OpenJob, claims: Claims, world: World) -> list[Member]:
    selected = (device for device in world.devices if entry.spec.devices.selector.matches(device.labels))
    return [_member(entry, device, claims[device.name], world) for device in selected]


def _member(entry: OpenJob, device: Device, claimed: OpenJob | None, world: World) -> Member:
    program = world.programs.get((entry.job.uid, device.spec.device_class))
    holder = claimed.job.uid if claimed else None
    stand = stand_of(device, entry.job, entry.memory.generation, holder, program)
    return Member(device, stand, claimed.job.name if claimed and stand is Stand.BUSY else None)


def _decide_job(entry: OpenJob, members: Sequence[Member], world: World, now: float) -> Iterable[Action]:
    if entry.wants_work:
        known = {name for uid, name in world.programs if uid == entry.job.uid}
        yield from (PlanProgram(entry.job.name, name) for name in wanted_classes(members) if name not in known)
    judgement = judge(entry, members, world, now, finished=is_finished(entry.job, entry.memory.training_digest))
    yield judgement.status
    yield from tell(entry.job, judgement.status)
    deadline = entry.spec.completion.deadline_seconds
    if deadline is not None and judgement.status.completion_time is None and judgement.status.start_time is not None:
        yield CheckAgain(max(0.1, seconds(judgement.status.start_time) + deadline - now))


def _decide_device(
    device: Device, claimed: OpenJob | None, jobs: Sequence[OpenJob], world: World, now: float
) -> Iterable[Action]:
    told = dispatch(device, claimed, home(device, jobs), world, now)
    if told is not None:
        yield told
    yield SetDeviceStatus(device.name, fold(device, claimed, told.memory if told else device.memory))
