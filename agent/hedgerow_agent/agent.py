"""The agent's main loop: events in from session, trainer and timers; instructions out to store, session and trainer.

Everything happens on one thread, in the order of one queue. The decisions are the machine's.
"""

import logging
import os
import queue
import time
from collections import deque
from collections.abc import Callable

from hedgerow_agent.backends import BackendMissing, choose
from hedgerow_agent.budgets import read_cgroup_limit, read_rss_bytes
from hedgerow_agent.config import AgentConfig
from hedgerow_agent.intake import Intake
from hedgerow_agent.machine import MachineState, events, handle, twin
from hedgerow_agent.machine.events import Event
from hedgerow_agent.machine.instructions import Instruction, PublishReported, PublishTelemetry, SaveState
from hedgerow_agent.performer import Performer
from hedgerow_agent.session import Delivery, Down, Received, Session, Up
from hedgerow_agent.store import Store
from hedgerow_agent.version import agent_version
from hedgerow_plans.plan import KERNEL_TABLE, PROGRAM_SCHEMA
from hedgerow_plans.protocol.messages import BackendName, State
from hedgerow_plans.protocol.topics import Channel

_log = logging.getLogger(__name__)


class Agent:
    """One device."""

    def __init__(self, config: AgentConfig) -> None:
        self._config = config
        self._backend = _backend()
        self._store = Store(config.storage.folder)
        self._arrivals: queue.SimpleQueue[Event | Delivery | None] = queue.SimpleQueue()
        self._session = Session(
            config.broker,
            config.fleet,
            config.device,
            next_epoch=self._store.next_epoch,
            birth=self._birth,
            deliver=self._arrivals.put,
        )
        self._intake = Intake(config)
        self._performer = Performer(config, self._store, self._session, self._arrivals.put)
        self._news = False
        self._limit: tuple[int | None] | None = None
        self.state = MachineState()

    def stop(self) -> None:
        """Let `run` return; safe in a signal handler."""
        self._arrivals.put(None)

    def run(self) -> None:
        """Run until stopped."""
        self._process(events.Restarted(self._store.load_state(), self._store.active()))
        self._look_at_limits()
        self._session.start()
        try:
            self._loop()
        finally:
            self._performer.close()
            self._session.close(State(state="offline", epoch=0))

    def _loop(self) -> None:
        timing = self._config.timing
        timers = [
            _Timer(timing.telemetry_seconds, self._say_telemetry),
            _Timer(timing.budget_seconds, self._look_at_limits),
            _Timer(timing.look_again_seconds, lambda: self._process(events.Tick())),
        ]
        while True:
            wait = min(timer.due_seconds for timer in timers) - time.monotonic()
            try:
                arrival = self._arrivals.get(timeout=max(0.0, wait))
                if arrival is None:
                    return
                self._take(arrival)
            except queue.Empty:
                pass  # a timer is due
            for timer in timers:
                timer.run_if_due()
            if self._news and self._arrivals.empty():
                self._say_reported()

    def _take(self, arrival: Event | Delivery) -> None:
        match arrival:
            case Up():
                _log.info("Connected to the broker, epoch %d.", arrival.epoch)
                self._process(events.Connected(arrival.epoch))
            case Down():
                _log.warning("Not connected: %s.", arrival.reason)
                self._process(events.Disconnected())
            case Received():
                for event in self._intake.read(arrival, self.state, self._performer):
                    self._process(event)
            case _:
                self._process(arrival)

    def _process(self, event: Event) -> None:
        """Handle an event and everything that carrying out its instructions leads to."""
        waiting = deque([event])
        while waiting:
            before = self.state
            self.state, instructions = handle(self.state, waiting.popleft())
            if (before.phase, before.reason) != (self.state.phase, self.state.reason):
                _log.info("%s (%s). %s", self.state.phase, self.state.reason, self.state.message)
            for instruction in instructions:
                waiting.extend(self._perform_or_wait(instruction))

    def _perform_or_wait(self, instruction: Instruction) -> list[Event]:
        """Carry out an instruction; a disk that refuses is no reason to end, and is tried again at the next tick."""
        try:
            return self._perform(instruction)
        except OSError as error:
            _log.error("%s could not be done: %s", type(instruction).__name__, error)
            return [events.StorageFailed(f"The device's storage refused a write: {error}. It is tried again.")]

    def _perform(self, instruction: Instruction) -> list[Event]:
        match instruction:
            case SaveState():
                self._store.save_state(self.state)
                return [events.StorageWorks()] if self.state.volatile.storage_error else []
            case PublishReported():
                self._news = True  # said once the queue is empty, so that a burst becomes one message
                return []
            case PublishTelemetry():
                self._say_telemetry()
                return []
        return self._performer.perform(instruction)

    def _say_reported(self) -> None:
        self._news = False
        self._session.say(Channel.REPORTED, twin.reported(self.state), keep=True)

    def _say_telemetry(self) -> None:
        self._session.say(Channel.TELEMETRY, twin.telemetry(self.state, read_rss_bytes()), keep=False)

    def _look_at_limits(self) -> None:
        """Tell the machine when the cgroup's limit has changed."""
        root = self._config.limits.cgroup_root
        limit = None if root is None else read_cgroup_limit(root)
        if self._limit != (limit,):
            self._limit = (limit,)
            self._process(events.BudgetChanged(limit, read_rss_bytes()))

    def _birth(self, epoch: int) -> State:
        return State(
            state="online",
            epoch=epoch,
            device_class=self._config.device_class,
            labels=self._config.labels,
            agent_version=agent_version(),
            program_schema=PROGRAM_SCHEMA,
            kernel_table=KERNEL_TABLE,
            backend=self._backend,
        )


def _backend() -> BackendName | None:
    """Return what computes here unless a job asks otherwise, and say once where that is less than it could be."""
    try:
        choice = choose(None, os.environ)
    except BackendMissing as missing:
        _log.error("%s No job can train here until then.", missing)
        return None
    if choice.remark:
        _log.warning(choice.remark)
    return choice.name


class _Timer:
    """Something to do every so many seconds."""

    def __init__(self, every_seconds: float, action: Callable[[], None]) -> None:
        self._every_seconds, self._action = every_seconds, action
        self.due_seconds = time.monotonic() + every_seconds

    def run_if_due(self) -> None:
        """Do it if the time has come; what was missed meanwhile is not made up for."""
        now = time.monotonic()
        if now >= self.due_seconds:
            self.due_seconds = now + self._every_seconds
            self._action()
