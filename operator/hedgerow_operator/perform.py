"""Carries out what was decided: memories are written down before anything relies on them, then documents go out.

One device that cannot be served does not keep the others from it; whatever failed is decided again a little later.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hedgerow_operator.actions import (
    Action,
    CheckAgain,
    Dispatch,
    PlanProgram,
    RememberJob,
    SetDeviceStatus,
    SetJobStatus,
    Tell,
)
from hedgerow_operator.broker import Broker
from hedgerow_operator.decide.status import timestamp
from hedgerow_operator.gather import place_of
from hedgerow_operator.kube import Body, ClusterError, Kube
from hedgerow_operator.memories import write_memory
from hedgerow_operator.planning.programs import Programs
from hedgerow_operator.registry import Registry
from hedgerow_operator.statuses import job_status
from hedgerow_operator.writing import StatusWriter
from hedgerow_plans.protocol.envelope import Header, payload_text, seal
from hedgerow_plans.protocol.topics import Channel, device_topic, program_topic
from hedgerow_plans.resources.common import API_VERSION

IN_FLIGHT = 16
_log = logging.getLogger(__name__)


def programs_prefix(fleet: str) -> str:
    """Return what the topics of every program of a fleet begin with."""
    return program_topic(fleet, "", 0).removesuffix("/0")


def devices_prefix(fleet: str) -> str:
    """Return what the topics of every device of a fleet begin with."""
    return device_topic(fleet, "", Channel.DESIRED).removesuffix(f"/{Channel.DESIRED}")


@dataclass(frozen=True, slots=True)
class Performer:
    """Everything through which actions reach the world."""

    registry: Registry
    kube: Kube
    broker: Broker
    programs: Programs
    writer: StatusWriter
    key: Ed25519PrivateKey
    again: Callable[[str, float], None]  # a fleet, and after how many seconds

    async def perform(self, fleet: str, actions: list[Action]) -> None:
        """Carry out actions; raise ClusterError if something must be tried again."""
        self.publish_programs(fleet)
        dispatches: list[Dispatch] = []
        for action in actions:
            match action:
                case RememberJob():
                    await self._remember_job(fleet, action)
                case PlanProgram():
                    self._plan(fleet, action)
                case Dispatch():
                    dispatches.append(action)
                case Tell():
                    await self._tell(fleet, action)
                case CheckAgain(after_seconds):
                    self.again(fleet, after_seconds)
                case SetJobStatus() | SetDeviceStatus():
                    self._set_status(fleet, action)
        self.clear_leftovers(fleet)
        await self._dispatch_all(fleet, dispatches)

    def publish_programs(self, fleet: str) -> None:
        """Hold the parts of every program that is in use."""
        jobs = [job for (namespace, _), job in self.registry.jobs.items() if namespace == fleet]
        places = [place for job in jobs if (place := place_of(fleet, job, ""))]
        self.programs.forget_jobs(fleet, {(place.job_uid, place.generation) for place in places})
        for topic, piece in self._parts(fleet).items():
            self.broker.hold(topic, piece)

    def clear_leftovers(self, fleet: str) -> None:
        """Clear programs that no job uses and documents of devices that are gone, whenever they were published."""
        if self.programs.is_settled(fleet):  # else a program that is being read back would look unused
            wanted = self._parts(fleet)
            for topic in self.broker.held(programs_prefix(fleet)):
                if topic not in wanted:
                    self.broker.clear(topic)
        known = {
            device_topic(fleet, name, Channel.DESIRED)
            for (namespace, name), entry in self.registry.devices.items()
            if namespace == fleet and entry.spec is not None
        }
        for topic in self.broker.held(devices_prefix(fleet)):
            if topic not in known:
                self.broker.clear(topic)

    def _parts(self, fleet: str) -> dict[str, bytes]:
        return {
            program_topic(fleet, parts.digest, number): piece
            for parts in self.programs.parts(fleet)
            for number, piece in enumerate(parts.pieces)
        }

    async def _remember_job(self, fleet: str, action: RememberJob) -> None:
        await self.kube.patch("trainingjobs", fleet, action.job, write_memory(action.memory))
        self.registry.set_job((fleet, action.job), memory=action.memory)

    def _plan(self, fleet: str, action: PlanProgram) -> None:
        job = self.registry.jobs.get((fleet, action.job))
        place = place_of(fleet, job, action.device_class) if job else None
        if job is not None and place is not None:
            spec = self.registry.classes.get(action.device_class)
            self.programs.ask(place, job, spec, lambda: self.again(fleet, 0.0))

    def _set_status(self, fleet: str, action: SetJobStatus | SetDeviceStatus) -> None:
        if isinstance(action, SetJobStatus):
            status = job_status(action)
            self.registry.set_job((fleet, action.job), status=status)
            self.writer.want(("trainingjobs", fleet, action.job), status.to_yaml_form())
            return
        entry = self.registry.devices.get((fleet, action.device))
        if entry is not None and entry.spec is not None:
            seen = timestamp(entry.seen_at) if entry.seen_at else None
            update = {"last_seen": seen, "observed_generation": entry.generation}
            status_form = action.status.model_copy(update=update).to_yaml_form()
            self.writer.want(("devices", fleet, action.device), status_form)

    async def _dispatch_all(self, fleet: str, dispatches: list[Dispatch]) -> None:
        limit = asyncio.Semaphore(IN_FLIGHT)

        async def one(action: Dispatch) -> ClusterError | None:
            async with limit:
                return await self._dispatch(fleet, action)

        due = [action for action in dispatches if self._is_due(fleet, action)]
        problems = [problem for problem in await asyncio.gather(*map(one, due)) if problem is not None]
        if problems:
            raise problems[0]

    def _is_due(self, fleet: str, action: Dispatch) -> bool:
        entry = self.registry.devices.get((fleet, action.device))
        if entry is None:
            return False
        held = self.broker.holds(device_topic(fleet, action.device, Channel.DESIRED))
        return entry.memory != action.memory or not held

    async def _dispatch(self, fleet: str, action: Dispatch) -> ClusterError | None:
        """Write the sequence number down, then publish what it stands for."""
        entry = self.registry.devices.get((fleet, action.device))
        if entry is None:
            return None  # deleted meanwhile
        if entry.memory != action.memory:
            try:
                written = await self.kube.patch("devices", fleet, action.device, write_memory(action.memory))
            except ClusterError as problem:
                _log.warning("Device %s/%s was not told anything: %s", fleet, action.device, problem)
                return problem
            if written is None:
                return None  # deleted meanwhile
            entry.memory = action.memory
        header = Header(fleet, action.device, action.memory.sequence)
        sealed = seal(self.key, header, payload_text(action.desired))
        self.broker.hold(device_topic(fleet, action.device, Channel.DESIRED), sealed)
        return None

    async def _tell(self, fleet: str, action: Tell) -> None:
        """Post an event; nobody waits for one, and nothing depends on it."""
        job = self.registry.jobs.get((fleet, action.job))
        if job is None:
            return
        try:
            await self.kube.create("events", fleet, _event(fleet, job.uid, action))
        except ClusterError as problem:
            _log.warning("An event about job %s/%s was not posted: %s", fleet, action.job, problem)


def _event(fleet: str, uid: str, action: Tell) -> Body:
    moment = timestamp(time.time())
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{action.job[:200]}.{uuid.uuid4().hex[:16]}", "namespace": fleet},
        "involvedObject": {
            "apiVersion": API_VERSION,
            "kind": "TrainingJob",
            "namespace": fleet,
            "name": action.job,
            "uid": uid,
        },
        "reason": action.reason,
        "message": action.message[:1000],
        "type": "Warning" if action.is_warning else "Normal",
        "source": {"component": "hedgerow-operator"},
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }
