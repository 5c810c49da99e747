"""The device's own /metrics for Prometheus, made from the machine's state at every scrape. Loopback by default.

hedgerow_agent_arena_planned_bytes            what the rung in use promises
hedgerow_agent_arena_measured_bytes           highest byte seen on that rung
hedgerow_agent_arena_budget_bytes             what may be used right now
hedgerow_agent_energy_joules_total{source}    spent on the job so far, measured or modelled
hedgerow_agent_loss                           of the newest step reported
hedgerow_agent_accuracy{moment}               before, now (validation split), after
hedgerow_agent_step, hedgerow_agent_steps     how far, and how far it goes
hedgerow_agent_rung, hedgerow_agent_rungs     which of how many; 0 has the most memory
hedgerow_agent_rung_switches_total{direction} down, up
hedgerow_agent_checkpoints_total              written since the agent first ran
hedgerow_agent_rollbacks_total                adapters gone back
hedgerow_agent_refused_documents_total        documents that were not obeyed
hedgerow_agent_trainer_crashes                on this generation
hedgerow_agent_phase{phase}                   1 for the phase it is in
hedgerow_agent_connected                      1 while the broker is there
hedgerow_agent_resident_bytes{process}        of the agent, and of the trainer before its arena
"""

from collections.abc import Callable, Iterable
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Metric, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from hedgerow_agent.budgets import read_rss_bytes
from hedgerow_agent.config import Metrics
from hedgerow_agent.machine.state import MachineState
from hedgerow_plans.protocol.messages import Phase, Progress

_PREFIX = "hedgerow_agent_"
_MICROJOULES_PER_JOULE = 1_000_000


class StateCollector(Collector):
    """Turns the newest state into series."""

    def __init__(self, state: Callable[[], MachineState]) -> None:
        self._state = state

    def collect(self) -> Iterable[Metric]:
        """Return the series of this moment."""
        state = self._state()
        return [*_device_series(state), *(_progress_series(state.progress) if state.progress else ())]


def serve_metrics(settings: Metrics, state: Callable[[], MachineState]) -> tuple[WSGIServer, int]:
    """Start answering scrapes and return the server with its port."""
    registry = CollectorRegistry()
    registry.register(StateCollector(state))
    server, _thread = start_http_server(settings.port, settings.address, registry)
    return server, server.server_port


def _device_series(state: MachineState) -> Iterable[Metric]:
    yield _counter("checkpoints", "Checkpoints written.", state.checkpoints_written)
    yield _counter("rollbacks", "Adapters gone back.", state.rollbacks)
    refused = state.refusal.count if state.refusal else 0
    yield _counter("refused_documents", "Documents that were not obeyed.", refused)
    yield _gauge("trainer_crashes", "Crashes of the trainer on this generation.", state.crashes)
    yield _gauge("connected", "1 while the broker is there.", int(state.volatile.connected))
    phases = {str(phase): float(phase is state.phase) for phase in Phase}
    yield _labelled("phase", "1 for the phase the device is in.", "phase", phases)
    resident = {"agent": float(read_rss_bytes())}
    if state.footprint_bytes is not None:
        resident["trainer"] = float(state.footprint_bytes)
    yield _labelled("resident_bytes", "Resident set of the processes.", "process", resident)


def _progress_series(progress: Progress) -> Iterable[Metric]:
    memory, energy = progress.memory, progress.energy
    yield _gauge("arena_planned_bytes", "Promised peak of the rung in use.", memory.planned_bytes)
    if memory.measured_bytes is not None:
        yield _gauge("arena_measured_bytes", "Highest byte seen on the rung in use.", memory.measured_bytes)
    yield _gauge("arena_budget_bytes", "What may be used right now.", memory.budget_bytes)
    joules = CounterMetricFamily(f"{_PREFIX}energy_joules", "Energy spent on the job.", labels=["source"])
    joules.add_metric([energy.source], energy.microjoules / _MICROJOULES_PER_JOULE)
    yield joules
    if progress.loss is not None:
        yield _gauge("loss", "Loss of the newest step reported.", progress.loss)
    moments = {
        "before": progress.accuracy_before,
        "now": progress.accuracy_now,
        "after": progress.accuracy_after,
    }
    known = {moment: value for moment, value in moments.items() if value is not None}
    yield _labelled(
        "accuracy", "Before: test split, base model; now: validation split; after: test split.", "moment", known
    )
    yield _gauge("step", "Steps done.", progress.step)
    yield _gauge("steps", "Steps of the whole job.", progress.total_steps)
    yield _gauge("rung", "Rung in use; 0 has the most memory.", progress.rung)
    yield _gauge("rungs", "Rungs of the program.", progress.rungs)
    switches = CounterMetricFamily(f"{_PREFIX}rung_switches", "Changes of rung.", labels=["direction"])
    switches.add_metric(["down"], progress.switches_down)
    switches.add_metric(["up"], progress.switches_up)
    yield switches


def _gauge(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"{_PREFIX}{name}", help_text, value=value)


def _counter(name: str, help_text: str, value: float) -> Metric:
    return CounterMetricFamily(f"{_PREFIX}{name}", help_text, value=value)


def _labelled(name: str, help_text: str, label: str, values: dict[str, float]) -> Metric:
    family = GaugeMetricFamily(f"{_PREFIX}{name}", help_text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family
