"""Everything the operator knows, in plain dictionaries: fed by watch events and MQTT messages, read by `gather`.

Our own status and memory of an object are kept here from the moment they are decided: an event that arrives later shows
an older copy of them, and must not undo what was decided since. Nor does an older copy of an object, or one of what
is gone, undo what a newer event has shown. What an event changes is told by its return value, so that a status write
never triggers work.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hedgerow_operator.memories import read_device_memory, read_job_memory
from hedgerow_operator.recency import Recency
from hedgerow_operator.world import DeviceMemory, Job
from hedgerow_plans.protocol.messages import Reported, State, Telemetry
from hedgerow_plans.resources.device import Device, DeviceSpec
from hedgerow_plans.resources.device_class import DeviceClass, DeviceClassSpec
from hedgerow_plans.resources.parsing import Unparsable, parse_resource
from hedgerow_plans.resources.training_job import TrainingJob, TrainingJobStatus

Key = tuple[str, str]  # namespace and name
Body = Mapping[str, Any]
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class DeviceEntry:
    """A device: its resource, if there is one, and what it last said."""

    spec: DeviceSpec | None = None  # None: there is no Device resource, or it does not parse
    uid: str = ""  # of the Device resource; empty: there is none
    generation: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    memory: DeviceMemory = field(default_factory=DeviceMemory)
    state: State | None = None
    reported: Reported | None = None
    telemetry: Telemetry | None = None
    seen_at: float = 0.0
    is_being_created: bool = False
    tried_at: float = 0.0  # when its Device was last asked for, on the clock that only goes forward

    @property
    def is_there(self) -> bool:
        """Whether the device is connected, or asleep and will be."""
        return self.state is not None and self.state.state in {"online", "sleeping"}

    def twin(self) -> Reported | None:
        """Return the device's report with the freshest progress: telemetry knows more between two reports."""
        reported, telemetry = self.reported, self.telemetry
        if reported is None or telemetry is None or telemetry.progress is None or reported.progress is None:
            return reported
        same = telemetry.job_uid == reported.job_uid and telemetry.phase is reported.phase
        if not same or telemetry.progress.step <= reported.progress.step:
            return reported
        known = {"accuracy_before": reported.progress.accuracy_before, "accuracy_now": reported.progress.accuracy_now}
        fresh = telemetry.progress.model_dump(exclude_none=True)
        progress = telemetry.progress.model_copy(
            update={name: value for name, value in known.items() if value is not None and name not in fresh}
        )
        return reported.model_copy(update={"progress": progress})


class Registry:
    """The fleets as the operator knows them."""

    def __init__(self, most_unregistered: int = 10_000) -> None:
        self._most_unregistered = most_unregistered
        self._unregistered: set[Key] = set()  # devices that speak and have no resource
        self.jobs: dict[Key, Job] = {}
        self.devices: dict[Key, DeviceEntry] = {}
        self.classes: dict[str, DeviceClassSpec] = {}
        self.class_uids: dict[str, str] = {}
        self.recency = Recency()

    def fleets(self) -> set[str]:
        """Return the namespaces in which there is anything."""
        return {fleet for fleet, _ in (*self.jobs, *self.devices)}

    def number_of_devices(self) -> int:
        """Return how many Device resources there are, or will be in a moment."""
        return sum(bool(entry.uid) or entry.is_being_created for entry in self.devices.values())

    def is_another(self, kind: str, key: Key, uid: str) -> bool:
        """Whether the object of that name is not the one of that uid: deleted and created again in between."""
        if kind == "trainingjobs":
            known = self.jobs[key].uid if key in self.jobs else ""
        elif kind == "devices":
            known = self.devices[key].uid if key in self.devices else ""
        else:
            known = self.class_uids.get(key[1], "")
        return known not in {"", uid}

    def put_job(self, body: Body) -> bool:
        """Take in a TrainingJob; return whether it changed in a way that matters."""
        metadata = body["metadata"]
        if self.recency.is_outdated(metadata):
            return False
        key, known = _key(metadata), self.jobs.get(_key(metadata))
        same = known is not None and known.uid == metadata.get("uid")
        if same and known is not None and known.generation == metadata.get("generation", 1):
            return False
        job = _job(body)
        if same and known is not None:
            job = replace(job, status=known.status, memory=known.memory)
        self.jobs[key] = job
        return True

    def drop_job(self, namespace: str, name: str) -> bool:
        """Forget a TrainingJob that is gone or going."""
        return self.jobs.pop((namespace, name), None) is not None

    def set_job(self, key: Key, **changes: Any) -> None:
        """Note what was decided about a job."""
        if key in self.jobs:
            self.jobs[key] = replace(self.jobs[key], **changes)

    def entry_for(self, key: Key) -> DeviceEntry | None:
        """Return the entry of a device that speaks, a new one if there is room; anybody can make up names."""
        if key not in self.devices:
            if len(self._unregistered) >= self._most_unregistered and not self._forget_an_absent_one():
                return None
            self.devices[key] = DeviceEntry()
            self._unregistered.add(key)
        return self.devices[key]

    def _forget_an_absent_one(self) -> bool:
        absent = next((key for key in self._unregistered if not self.devices[key].is_there), None)
        if absent is not None:
            self.forget_unregistered(absent)
        return absent is not None

    def forget_unregistered(self, key: Key) -> None:
        """Forget a device that has no resource and has taken back its word."""
        if key in self._unregistered:
            self._unregistered.discard(key)
            del self.devices[key]

    def put_device(self, body: Body) -> bool:
        """Take in a Device; return whether it changed in a way that matters."""
        metadata = body["metadata"]
        if self.recency.is_outdated(metadata):
            return False
        key = _key(metadata)
        entry = self.devices.setdefault(key, DeviceEntry())
        self._unregistered.discard(key)
        labels, uid = dict(metadata.get("labels") or {}), str(metadata.get("uid", ""))
        generation = int(metadata.get("generation", 1))
        if (entry.uid, entry.generation, entry.labels) == (uid, generation, labels) and entry.spec is not None:
            return False
        if entry.uid != uid:
            entry.uid, entry.memory = uid, read_device_memory(metadata.get("annotations") or {})
        device = parse_resource(Device, body)
        if isinstance(device, Unparsable):
            _log.warning("%s The device gets no work.", device.message)
            entry.spec = None
            return True
        entry.spec, entry.generation, entry.labels = device.spec, generation, labels
        entry.is_being_created = False
        return True

    def drop_device(self, namespace: str, name: str) -> bool:
        """Forget a Device resource; of the device itself only stays whether it is there."""
        key = (namespace, name)
        entry = self.devices.get(key)
        if entry is None or not entry.uid:
            return False
        del self.devices[key]
        if entry.is_there:
            self.devices[key] = DeviceEntry(state=entry.state, seen_at=entry.seen_at, tried_at=entry.tried_at)
            self._unregistered.add(key)
        return True

    def put_class(self, body: Body) -> bool:
        """Take in a DeviceClass; return whether it changed in a way that matters."""
        metadata = body["metadata"]
        if self.recency.is_outdated(metadata):
            return False
        name = str(metadata["name"])
        self.class_uids[name] = str(metadata.get("uid", ""))
        parsed = parse_resource(DeviceClass, body)
        if isinstance(parsed, Unparsable):
            _log.warning("%s Nothing is planned for it.", parsed.message)
            return self.drop_class(name)
        changed = self.classes.get(name) != parsed.spec
        self.classes[name] = parsed.spec
        return changed

    def drop_class(self, name: str) -> bool:
        """Forget a DeviceClass."""
        self.class_uids.pop(name, None)
        return self.classes.pop(name, None) is not None


def _key(metadata: Mapping[str, Any]) -> Key:
    return str(metadata.get("namespace", "")), str(metadata["name"])


def _job(body: Body) -> Job:
    metadata = body["metadata"]
    parsed = parse_resource(TrainingJob, body)
    problem = parsed.message if isinstance(parsed, Unparsable) else ""
    return Job(
        name=str(metadata["name"]),
        uid=str(metadata.get("uid", "")),
        generation=int(metadata.get("generation", 1)),
        created=str(metadata.get("creationTimestamp", "")),
        spec=None if isinstance(parsed, Unparsable) else parsed.spec,
        status=TrainingJobStatus() if isinstance(parsed, Unparsable) else parsed.status,
        memory=read_job_memory(metadata.get("annotations") or {}),
        problem=problem,
    )
