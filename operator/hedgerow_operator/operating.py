"""The operator as a whole: connections, the registry, and the one reconcile that everything leads to.

Events and messages change the registry and mark a fleet as due; a loop looks at fleets that are due, decides, and acts.
Nothing acts on an event itself, so that a lost event costs time and never correctness.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hedgerow_operator.broker import Broker, Topics
from hedgerow_operator.decide import decide
from hedgerow_operator.gather import gather
from hedgerow_operator.health import Health
from hedgerow_operator.inbox import Heard, hear
from hedgerow_operator.kube import ClusterError, connect
from hedgerow_operator.metrics import FleetCollector, OperatorMetrics
from hedgerow_operator.perform import Performer, programs_prefix
from hedgerow_operator.planning.memo import Memo
from hedgerow_operator.planning.programs import Programs
from hedgerow_operator.planning.solver import say_how_planning_is_done
from hedgerow_operator.registry import Registry
from hedgerow_operator.schedule import Schedule
from hedgerow_operator.settings import Settings
from hedgerow_operator.survey import WatchMirror
from hedgerow_operator.web import WebServer
from hedgerow_operator.welcome import Welcome
from hedgerow_operator.writing import StatusWriter
from hedgerow_plans.protocol.keys import key_id
from hedgerow_plans.protocol.topics import Channel, DeviceTopic, device_topic

KINDS = ("deviceclasses", "devices", "trainingjobs")
SAMPLE_SECONDS = 2.0
"""How soon figures of the moment reach a job's status; nothing waits for them."""

SETTLE_SECONDS = 1.0
"""After the first connection: retained reports arrive one by one, and deciding before they did would only flicker."""

LONGEST_SURVEY_SECONDS = 20.0
_log = logging.getLogger(__name__)


def subscriptions(fleets: tuple[str, ...]) -> Topics:
    """Return what to listen to in these fleets."""
    heard = (Channel.STATE, Channel.REPORTED, Channel.TELEMETRY)
    return Topics(
        tuple(device_topic(fleet, "+", channel) for fleet in fleets for channel in heard),
        tuple(
            topic
            for fleet in fleets
            for topic in (device_topic(fleet, "+", Channel.DESIRED), f"{programs_prefix(fleet)}+/+")
        ),
    )


class Operator:
    """One operator process, from start to stop."""

    def __init__(self, settings: Settings, key: Ed25519PrivateKey) -> None:
        self._settings = settings
        self._key = key
        self._registry = Registry(settings.max_devices)
        self._metrics = OperatorMetrics()
        self._metrics.series.register(FleetCollector(self._registry, per_device=settings.metrics_per_device))
        self._health = Health(time.monotonic, settings.health_grace_seconds)
        self._mirrors = {kind: WatchMirror() for kind in KINDS}
        self._web = WebServer(settings.listen_address, settings.metrics_port, settings.health_port)
        self._surveyed: dict[str, dict[str, dict[str, Any]]] = {kind: {} for kind in KINDS}
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Connect to everything, learn what there is, and begin to work."""
        settings = self._settings
        self._kube = connect(self._metrics.wrote)
        memo = Memo(settings.memo_folder)
        self._programs = Programs(
            self._kube, memo, settings.plan_workers, settings.plan_timeout_seconds, self._metrics.planned
        )
        self._writer = StatusWriter(self._kube)
        self._schedule = Schedule(self._reconcile)
        topics = subscriptions(settings.namespaces or ("+",))
        self._broker = Broker(settings.broker, topics, self._received, self._metrics.message)
        self._performer = Performer(
            self._registry, self._kube, self._broker, self._programs, self._writer, self._key, self._schedule.mark
        )
        self._welcome = Welcome(
            self._registry,
            self._kube,
            settings.max_devices,
            settings.approve_automatically,
            lambda made: self._take_in("devices", made, deleted=False),
            self._metrics.refused_device,
        )
        await self._web.start(self._metrics.series, self._health, self._check)
        self._writer.start()
        self._tasks.append(asyncio.create_task(self._work(), name="work"))
        _log.info("Signing with key %s.", key_id(self._key.public_key()))
        say_how_planning_is_done()

    async def stop(self) -> None:
        """Stop working; devices go on by themselves with what they were told."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._schedule.stop()
        await self._programs.stop()
        await self._writer.stop()
        await self._broker.stop()
        await self._web.stop()
        await self._kube.close()

    def watched(self, kind: str, body: Mapping[str, Any], *, deleted: bool) -> None:
        """Take in an event of the watch."""
        self._mirrors[kind].saw(body["metadata"], deleted=deleted)
        self._take_in(kind, body, deleted=deleted)

    async def _work(self) -> None:
        """Learn what there is, wait a moment for the devices' retained words, then look again and again."""
        interval_seconds = min(LONGEST_SURVEY_SECONDS, max(0.5, self._settings.health_grace_seconds / 3))
        while not await self._survey(compare=False):
            await asyncio.sleep(1.0)
        self._broker.start()  # not before: what unknown devices report is passed over
        for _ in range(50):
            if self._broker.is_connected:
                break
            await asyncio.sleep(0.1)
        await asyncio.sleep(SETTLE_SECONDS)
        self._health.is_ready = True
        self._schedule.start()
        for fleet in self._registry.fleets():
            self._schedule.mark(fleet, 0.0)
        while True:
            await asyncio.sleep(interval_seconds)
            if await self._survey(compare=True):
                await self._welcome.greet_waiting()

    async def _survey(self, *, compare: bool) -> bool:
        """List everything; return whether the API server answered."""
        self._registry.recency.list_begins()
        try:
            listed = {kind: await self._list(kind) for kind in KINDS}
        except ClusterError as problem:
            self._health.note("cluster", str(problem))
            _log.warning("%s", problem)
            return False
        self._health.note("cluster", None)
        for kind, bodies in listed.items():
            for body in bodies:
                self._take_in(kind, body, deleted=False)
                if not compare and kind != "deviceclasses":
                    metadata = body["metadata"]
                    self._writer.known((kind, metadata["namespace"], metadata["name"]), dict(body.get("status") or {}))
            if compare:
                self._drop_unlisted(kind, bodies)
                self._mirrors[kind].compare([body["metadata"] for body in bodies])
        late = [f"{kind} {', '.join(m.lagging[:3])}" for kind, m in self._mirrors.items() if m.lagging]
        self._health.note("watch", f"The watch has not shown {'; '.join(late)}." if late else None)
        return True

    async def _list(self, kind: str) -> list[dict[str, Any]]:
        if kind == "deviceclasses" or not self._settings.namespaces:
            return await self._kube.list(kind)
        return [body for namespace in self._settings.namespaces for body in await self._kube.list(kind, namespace)]

    def _drop_unlisted(self, kind: str, bodies: list[dict[str, Any]]) -> None:
        """Forget what is gone, even if no event said so; what was created since the list began is not gone."""
        listed = {str(body["metadata"]["uid"]): body for body in bodies}
        for uid in self._surveyed[kind].keys() - listed.keys():
            self._take_in(kind, self._surveyed[kind][uid], deleted=True)
        self._surveyed[kind] = {uid: {"metadata": body["metadata"]} for uid, body in listed.items()}

    def _take_in(self, kind: str, body: Mapping[str, Any], *, deleted: bool) -> None:
        """Change the registry, and mark a fleet as due if that matters to it."""
        metadata = body["metadata"]
        fleet, name = str(metadata.get("namespace", "")), str(metadata["name"])
        gone, uid = deleted or bool(metadata.get("deletionTimestamp")), str(metadata.get("uid", ""))
        if gone:
            self._registry.recency.went(uid)
            if self._registry.is_another(kind, (fleet, name), uid):
                return
        match kind:
            case "trainingjobs":
                changed = self._registry.drop_job(fleet, name) if gone else self._registry.put_job(body)
                if gone:
                    self._writer.forget((kind, fleet, name))
            case "devices":
                changed = self._drop_device(fleet, name) if gone else self._put_device(body)
            case _:
                changed = self._registry.drop_class(name) if gone else self._registry.put_class(body)
                if changed:
                    self._programs.forget_refusals(name)
        if changed:
            for due in self._registry.fleets() if kind == "deviceclasses" else {fleet}:
                self._schedule.mark(due, 0.0)

    def _put_device(self, body: Mapping[str, Any]) -> bool:
        fleet, name = str(body["metadata"].get("namespace", "")), str(body["metadata"]["name"])
        before = self._registry.devices.get((fleet, name))
        is_new = before is None or not before.uid
        changed = self._registry.put_device(body)
        if is_new and changed:  # what it said while it was unknown was passed over
            for channel in (Channel.STATE, Channel.REPORTED):
                self._broker.ask(device_topic(fleet, name, channel))
        return changed

    def _drop_device(self, fleet: str, name: str) -> bool:
        self._writer.forget(("devices", fleet, name))
        self._broker.clear(device_topic(fleet, name, Channel.DESIRED))
        return self._registry.drop_device(fleet, name)

    def _received(self, topic: str, payload: bytes) -> None:
        heard, origin = hear(self._registry, topic, payload, time.time())
        if heard is Heard.MALFORMED:
            self._metrics.malformed()
        if heard is Heard.CROWDED:
            self._metrics.refused_device()
        if origin is None or heard in {Heard.NOTHING, Heard.MALFORMED, Heard.CROWDED}:
            return
        if heard is Heard.BIRTH:
            self._schedule.soon(self._greet(origin))
        if not self._registry.devices[origin.fleet, origin.device].uid:
            return  # it changes no decision, and its fleet may be made up
        self._schedule.mark(origin.fleet, SAMPLE_SECONDS if heard is Heard.SAMPLE else 0.0)

    async def _greet(self, origin: DeviceTopic) -> None:
        while not self._health.is_ready:  # until then nobody is known
            await asyncio.sleep(0.1)
        await self._welcome.greet((origin.fleet, origin.device))

    async def _reconcile(self, fleet: str) -> None:
        """Look, decide, act."""
        began = time.monotonic()
        world = gather(fleet, self._registry, self._programs)
        actions = await asyncio.to_thread(decide, world, time.time())  # a large fleet takes a while to think about
        await self._performer.perform(fleet, actions)
        self._metrics.reconciled(time.monotonic() - began)

    def _check(self) -> None:
        """Bring the health up to date."""
        where = f"{self._settings.broker.host}:{self._settings.broker.port}"
        missing = None if self._broker.is_connected else f"The broker at {where} is not connected."
        self._health.note("broker", missing)
        self._health.note_tasks([*self._tasks, *self._broker.tasks(), *self._writer.tasks(), *self._schedule.tasks()])
