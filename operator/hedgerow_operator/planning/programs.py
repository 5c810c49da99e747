"""The programs of all jobs: one per training and class of devices, each asked for once.

Asking is cheap and never waits: a task looks into the cluster, then into the memo, and only then plans, in a pool of
processes so that the event loop stays free. What came out is there when the next decision looks.
"""

import asyncio
import logging
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

from hedgerow_operator.kube import Body, ClusterError, Kube
from hedgerow_operator.planning import storage, worker
from hedgerow_operator.planning.memo import Memo
from hedgerow_operator.planning.requests import plan_name, program_key, program_request
from hedgerow_operator.planning.worker import Outcome, Planned, Unusable
from hedgerow_operator.world import Impossible, Job, ProgramState, Ready, Underway
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.plan import Infeasible
from hedgerow_plans.program import ProgramRequest
from hedgerow_plans.protocol.parts import split
from hedgerow_plans.resources.device_class import DeviceClassSpec
from hedgerow_plans.resources.quantities import format_bytes
from hedgerow_plans.resources.reasons import PlannedReason

RETRY_SECONDS = 30.0
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class Clock(Protocol):
    """What is told how long planning took."""

    def __call__(self, device_class: str, outcome: str, seconds: float) -> None:
        """Note it."""


@dataclass(frozen=True, slots=True)
class Place:
    """One training of one job on one class of devices."""

    fleet: str
    job_uid: str
    generation: int
    device_class: str


@dataclass(frozen=True, slots=True)
class Parts:
    """A program in the pieces that are published."""

    digest: str
    pieces: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class _Candidate:
    name: str  # of an ExecutionPlan
    digest: str | None = None  # if it was settled


class Programs:
    """What is planned, being planned, or cannot be planned."""

    def __init__(self, kube: Kube, memo: Memo, workers: int, timeout_seconds: float, clock: Clock) -> None:
        self._kube = kube
        self._memo = memo
        self._workers = workers
        self._timeout_seconds = timeout_seconds
        self._clock = clock
        self._pool: ProcessPoolExecutor | None = None
        self._states: dict[Place, ProgramState] = {}
        self._parts: dict[Place, Parts] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._planning: dict[str, asyncio.Task[Outcome]] = {}  # by key: two jobs may want the same program

    def state(self, place: Place) -> ProgramState | None:
        """Return how it stands with a program, or None if nobody has asked."""
        return self._states.get(place)

    def parts(self, fleet: str) -> Iterator[Parts]:
        """Return the pieces of every program of a fleet."""
        return (parts for place, parts in self._parts.items() if place.fleet == fleet)

    def is_settled(self, fleet: str) -> bool:
        """Whether every program of a fleet that was asked for has been answered."""
        return not any(isinstance(state, Underway) for place, state in self._states.items() if place.fleet == fleet)

    def ask(self, place: Place, job: Job, device_class: DeviceClassSpec | None, then: Callable[[], None]) -> None:
        """See to it that there is a program, or a reason; `then` is called when there is."""
        if place in self._states:
            return
        self._states[place] = Underway()
        task = asyncio.create_task(self._answer(place, job, device_class, then))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def forget_jobs(self, fleet: str, alive: set[tuple[str, int]]) -> None:
        """Forget the programs of trainings that are no more."""
        for place in [p for p in self._states if p.fleet == fleet and (p.job_uid, p.generation) not in alive]:
            del self._states[place]
            self._parts.pop(place, None)

    def forget_refusals(self, device_class: str) -> None:
        """Ask again for what did not fit a class: it was edited, and may fit now."""
        for place, state in list(self._states.items()):
            if place.device_class == device_class and isinstance(state, Impossible):
                del self._states[place]

    async def stop(self) -> None:
        """Stop planning at once; nothing is half written."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._pool is not None:
            for process in list((self._pool._processes or {}).values()):  # noqa: SLF001 - it offers no other way
                process.terminate()
            self._pool.shutdown(wait=True, cancel_futures=True)

    async def _answer(
        self, place: Place, job: Job, device_class: DeviceClassSpec | None, then: Callable[[], None]
    ) -> None:
        try:
            state = self._states[place] = await self._find_or_plan(place, job, device_class)
            _log.info("Job %s/%s on %s: %s", place.fleet, job.name, place.device_class, _words(state))
        except ClusterError as problem:
            self._fail(place, str(problem), then)
        except BrokenExecutor:
            self._pool = None
            self._fail(place, "A planning process died twice; it may have run out of memory.", then)
        except Exception as problem:  # noqa: BLE001 - one program must not take the others with it
            _log.exception("Planning for %s failed.", place)
            self._fail(place, f"Planning failed: {problem}", then)
        then()

    def _fail(self, place: Place, message: str, then: Callable[[], None]) -> None:
        """Say what went wrong, and try again later."""
        text = f"{message} It is tried again in {RETRY_SECONDS:g} s."
        self._states[place] = Impossible(PlannedReason.PLANNING_FAILED, f"Device class {place.device_class}: {text}")

        def retry() -> None:
            if isinstance(self._states.get(place), Impossible):
                del self._states[place]
                then()

        asyncio.get_running_loop().call_later(RETRY_SECONDS, retry)

    async def _find_or_plan(self, place: Place, job: Job, device_class: DeviceClassSpec | None) -> ProgramState:
        owner = storage.job_owner(job.name, job.uid)
        asked = _request(place, job, device_class)
        request = asked if isinstance(asked, ProgramRequest) else None
        for kept in _candidates(place, job, request):
            if found := await self._load(place, kept, request, owner):
                return found
        if isinstance(asked, Impossible) or device_class is None:
            return asked if isinstance(asked, Impossible) else _unknown_class(place)
        key = program_key(asked)
        name = plan_name(asked, key)
        outcome = await self._plan_once(key, asked)
        if isinstance(outcome, Planned):
            await storage.keep(self._kube, place.fleet, storage.Kept(name, key, outcome), owner)
            await self._own(place, name, owner)
            return self._ready(place, name, outcome.encoded)
        return explain(outcome, place.device_class, device_class)

    async def _load(self, place: Place, kept: _Candidate, request: ProgramRequest | None, owner: Body) -> Ready | None:
        """Return a program of the cluster if it is the one that was settled, or the one that was asked for."""
        loaded = await storage.load(self._kube, place.fleet, kept.name)
        if loaded is None:
            return None
        spec, encoded = loaded
        if spec.digest == kept.digest:
            request = None  # these bytes were settled; the class may have been edited since
        elif request is None or spec.key != program_key(request):
            _log.warning("The ExecutionPlan %s/%s is not used: it is not the one asked for.", place.fleet, kept.name)
            return None
        checked = await self._in_pool(worker.check, encoded, request)
        if isinstance(checked, Unusable) or (request and not storage.is_summary(spec, checked)):
            message = checked.message if isinstance(checked, Unusable) else "Its summary is not that of its program."
            _log.warning("The ExecutionPlan %s/%s is made again: %s", place.fleet, kept.name, message)
            return None
        if not await self._own(place, kept.name, owner):
            return None
        if request:
            await asyncio.to_thread(self._memo.write, program_key(request), encoded)
        self._clock(place.device_class, "loaded", 0.0)
        return self._ready(place, kept.name, encoded)

    async def _own(self, place: Place, name: str, owner: Body) -> bool:
        try:
            return await storage.own(self._kube, place.fleet, name, owner)
        except ClusterError as problem:
            if problem.code != 409:
                raise
            return await storage.own(self._kube, place.fleet, name, owner)  # another job was quicker

    async def _plan_once(self, key: str, request: ProgramRequest) -> Outcome:
        """Plan under a key; whoever asks for the same key meanwhile waits for the same answer."""
        if key not in self._planning:
            self._planning[key] = asyncio.create_task(self._plan(key, request))
            self._planning[key].add_done_callback(lambda _: self._planning.pop(key, None))
        return await asyncio.shield(self._planning[key])

    async def _plan(self, key: str, request: ProgramRequest) -> Outcome:
        if remembered := await asyncio.to_thread(self._memo.read, key):
            checked = await self._in_pool(worker.check, remembered, request)
            if isinstance(checked, Planned):
                self._clock(request.device_class, "remembered", 0.0)
                return checked
        outcome = await self._in_pool(worker.plan, request, float(self._timeout_seconds))
        took = outcome.seconds if isinstance(outcome, Planned) else 0.0
        self._clock(request.device_class, type(outcome).__name__.lower(), took)
        if isinstance(outcome, Planned) and not outcome.cut_short:
            await asyncio.to_thread(self._memo.write, key, outcome.encoded)
        return outcome

    async def _in_pool(self, call: Callable[..., _T], *arguments: object) -> _T:
        """Call in a process of the pool; one that died while idle is replaced without anybody noticing."""
        try:
            return await self._submit(call, *arguments)
        except BrokenExecutor:
            _log.warning("A planning process died; starting a new one.")
            self._pool = None
            return await self._submit(call, *arguments)

    async def _submit(self, call: Callable[..., _T], *arguments: object) -> _T:
        if self._pool is None:
            context = multiprocessing.get_context("spawn")  # a fork would copy the broker's thread in mid-air
            self._pool = ProcessPoolExecutor(self._workers, mp_context=context)
        return await asyncio.get_running_loop().run_in_executor(self._pool, call, *arguments)

    def _ready(self, place: Place, name: str, encoded: bytes) -> Ready:
        reference, pieces = split(encoded)
        self._parts[place] = Parts(reference.digest, tuple(pieces))
        return Ready(name, reference)


def _request(place: Place, job: Job, device_class: DeviceClassSpec | None) -> ProgramRequest | Impossible:
    """Return what is asked for, or why nothing can be."""
    if device_class is None or job.spec is None:
        return _unknown_class(place)
    try:
        return program_request(job.spec, place.device_class, device_class)
    except GraphError as problem:
        return Impossible(PlannedReason.UNSUPPORTED_METHOD, str(problem))


def _unknown_class(place: Place) -> Impossible:
    text = f"There is no DeviceClass {place.device_class!r}; create it, or change spec.class of its devices."
    return Impossible(PlannedReason.UNKNOWN_DEVICE_CLASS, text)


def _candidates(place: Place, job: Job, request: ProgramRequest | None) -> list[_Candidate]:
    """Return the programs that may be there already: the settled one first."""
    names: dict[str, str | None] = {}
    if job.memory and (settled := dict(job.memory.programs).get(place.device_class)):
        names[settled] = dict(job.memory.digests).get(place.device_class)
    if request:
        names.setdefault(plan_name(request, program_key(request)), None)
    return [_Candidate(name, digest) for name, digest in names.items()]


def _words(state: ProgramState) -> str:
    return f"program {state.plan}." if isinstance(state, Ready) else getattr(state, "message", "")


def explain(outcome: Infeasible | Unusable, class_name: str, device_class: DeviceClassSpec) -> Impossible:
    """Return why there is no program, with the numbers and the remedy."""
    if isinstance(outcome, Unusable):
        reason = PlannedReason.PLANNING_FAILED if outcome.is_our_fault else PlannedReason.UNSUPPORTED_METHOD
        return Impossible(reason, f"Device class {class_name}: {outcome.message}")
    tensor = f" (the largest tensor at the fullest step is {outcome.tensor})" if outcome.tensor else ""
    text = (
        f"Nothing fits device class {class_name}: the smallest plan found needs {outcome.needed_bytes} bytes "
        f"({format_bytes(outcome.needed_bytes)}) and spec.memory.budget is {device_class.memory.budget} "
        f"({outcome.available_bytes} bytes); nothing can run below {outcome.floor_bytes} bytes{tensor}. "
        "Raise the budget, or choose a smaller batch, method or model."
    )
    return Impossible(PlannedReason.BUDGET_TOO_SMALL, text)
