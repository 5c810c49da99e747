"""Prometheus series: the fleet by class, fed by what devices say, and the operator's own work.

A device behind NAT cannot be scraped, so the fleet's figures are the operator's to show. They are computed from the
registry when somebody scrapes. One series per device is a choice, because a large fleet would drown Prometheus.
"""

from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from statistics import fmean

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric

from hedgerow_operator.registry import DeviceEntry, Registry
from hedgerow_plans.protocol.messages import Progress

Group = dict[tuple[str, str], list[tuple[str, DeviceEntry]]]


class OperatorMetrics:
    """Counters of the operator's own work, and the registry they live in."""

    def __init__(self) -> None:
        self.series = CollectorRegistry()
        self._planning = Histogram(
            "hedgerow_planning_seconds",
            "Time to plan one program, by outcome.",
            ["class", "outcome"],
            buckets=(0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000),
            registry=self.series,
        )
        self._writes = Counter(
            "hedgerow_api_writes", "Writes to the Kubernetes API.", ["verb", "kind"], registry=self.series
        )
        self._messages = Counter("hedgerow_mqtt_messages", "MQTT messages.", ["direction"], registry=self.series)
        self._malformed = Counter(
            "hedgerow_mqtt_malformed", "Messages that could not be understood.", registry=self.series
        )
        self._refused = Counter("hedgerow_devices_refused", "Births beyond the limit on devices.", registry=self.series)
        self._reconcile = Histogram(
            "hedgerow_reconcile_seconds",
            "Time from looking at a fleet to having acted.",
            registry=self.series,
            buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10),
        )

    def planned(self, device_class: str, outcome: str, seconds: float) -> None:
        """Note how long planning took."""
        self._planning.labels(device_class, outcome).observe(seconds)

    def wrote(self, verb: str, kind: str) -> None:
        """Count a write."""
        self._writes.labels(verb, kind).inc()

    def message(self, direction: str) -> None:
        """Count a message."""
        self._messages.labels(direction).inc()

    def malformed(self) -> None:
        """Count a message that made no sense."""
        self._malformed.inc()

    def refused_device(self) -> None:
        """Count a birth beyond the limit."""
        self._refused.inc()

    def reconciled(self, seconds: float) -> None:
        """Note how long one reconcile took."""
        self._reconcile.observe(seconds)


class FleetCollector:
    """The fleet's series, computed at every scrape."""

    def __init__(self, registry: Registry, *, per_device: bool) -> None:
        self._registry = registry
        self._per_device = per_device

    def collect(self) -> Iterator[Metric]:
        """Return every series of the moment."""
        groups = self._groups()
        yield self._jobs()
        yield _devices(groups)
        yield from _arenas(groups)
        yield from _training(groups)
        yield from _counts(groups)
        if self._per_device:
            yield from _single_devices(groups)

    def _groups(self) -> Group:
        groups: Group = {}
        for (fleet, name), entry in self._registry.devices.items():
            if entry.spec is not None:
                groups.setdefault((fleet, entry.spec.device_class), []).append((name, entry))
        return groups

    def _jobs(self) -> Metric:
        family = GaugeMetricFamily("hedgerow_jobs", "Jobs by state.", labels=["fleet", "state"])
        states = Tally((fleet, str(job.status.state or "Pending")) for (fleet, _), job in self._registry.jobs.items())
        for labels, number in states.items():
            family.add_metric(labels, number)
        return family


def _progress(entry: DeviceEntry) -> Progress | None:
    """Return the freshest figures: a telemetry sample, else the twin's."""
    if entry.telemetry is not None and entry.telemetry.progress is not None:
        return entry.telemetry.progress
    return entry.reported.progress if entry.reported else None


def _known(members: Iterable[tuple[str, DeviceEntry]]) -> list[Progress]:
    found = (_progress(entry) for _, entry in members)
    return [progress for progress in found if progress is not None]


def _state(entry: DeviceEntry) -> str:
    if entry.state is None or entry.state.state not in {"online", "sleeping"}:
        return entry.state.state if entry.state else "unknown"
    return str(entry.reported.phase) if entry.reported else "Idle"


def _devices(groups: Group) -> Metric:
    family = GaugeMetricFamily(
        "hedgerow_fleet_devices", "Devices by class and state.", labels=["fleet", "class", "state"]
    )
    for (fleet, name), members in groups.items():
        for state, number in Tally(_state(entry) for _, entry in members).items():
            family.add_metric([fleet, name, state], number)
    return family


def _arenas(groups: Group) -> Iterator[Metric]:
    for what, read in (
        ("planned", lambda p: p.memory.planned_bytes),
        ("measured", lambda p: p.memory.measured_bytes),
        ("budget", lambda p: p.memory.budget_bytes),
    ):
        family = GaugeMetricFamily(
            f"hedgerow_fleet_arena_{what}_bytes",
            f"Arena bytes, {what}, of the devices of a class together and of the largest.",
            labels=["fleet", "class", "aggregate"],
        )
        for (fleet, name), members in groups.items():
            sizes = [size for size in map(read, _known(members)) if size is not None]
            if sizes:
                family.add_metric([fleet, name, "sum"], sum(sizes))
                family.add_metric([fleet, name, "max"], max(sizes))
        yield family


def _training(groups: Group) -> Iterator[Metric]:
    loss = GaugeMetricFamily("hedgerow_fleet_loss", "Mean loss.", labels=["fleet", "class"])
    accuracy = GaugeMetricFamily("hedgerow_fleet_accuracy", "Mean accuracy.", labels=["fleet", "class", "moment"])
    energy = GaugeMetricFamily(
        "hedgerow_fleet_energy_microjoules", "Energy spent on the jobs under way.", labels=["fleet", "class", "source"]
    )
    rungs = GaugeMetricFamily("hedgerow_fleet_rung_devices", "Devices on a rung.", labels=["fleet", "class", "rung"])
    for (fleet, name), members in groups.items():
        known = _known(members)
        if losses := [p.loss for p in known if p.loss is not None]:
            loss.add_metric([fleet, name], fmean(losses))
        for moment in ("before", "now", "after"):
            values = [getattr(p, f"accuracy_{moment}") for p in known]
            if present := [value for value in values if value is not None]:
                accuracy.add_metric([fleet, name, moment], fmean(present))
        spent: Tally[str] = Tally()
        for progress in known:
            spent[str(progress.energy.source)] += progress.energy.microjoules
        for source, microjoules in spent.items():
            energy.add_metric([fleet, name, source], microjoules)
        for rung, number in Tally(p.rung for p in known).items():
            rungs.add_metric([fleet, name, str(rung)], number)
    yield from (loss, accuracy, energy, rungs)


def _counts(groups: Group) -> Iterator[Metric]:
    switches = GaugeMetricFamily(
        "hedgerow_fleet_rung_switches", "Changes of rung on the jobs under way.", labels=["fleet", "class", "direction"]
    )
    plain = {
        what: GaugeMetricFamily(f"hedgerow_fleet_{what}", text, labels=["fleet", "class"])
        for what, text in (
            ("checkpoints", "Checkpoints that devices have written since they started."),
            ("rollbacks", "Rollbacks that devices have carried out since they started."),
            ("refusals", "Documents that devices have refused."),
        )
    }
    for (fleet, name), members in groups.items():
        known = _known(members)
        switches.add_metric([fleet, name, "down"], sum(p.switches_down for p in known))
        switches.add_metric([fleet, name, "up"], sum(p.switches_up for p in known))
        samples = [entry.telemetry for _, entry in members if entry.telemetry is not None]
        plain["checkpoints"].add_metric([fleet, name], sum(sample.checkpoints_written for sample in samples))
        plain["rollbacks"].add_metric([fleet, name], sum(sample.rollbacks for sample in samples))
        refusals = [e.reported.refusal.count for _, e in members if e.reported and e.reported.refusal]
        plain["refusals"].add_metric([fleet, name], sum(refusals))
    yield from (switches, *plain.values())


def _single_devices(groups: Group) -> Iterator[Metric]:
    labels = ["fleet", "class", "device"]
    families = {
        what: GaugeMetricFamily(f"hedgerow_device_{what}", text, labels=labels)
        for what, text in (
            ("arena_planned_bytes", "Arena bytes that the plan in use promises."),
            ("arena_measured_bytes", "Arena bytes that were measured."),
            ("arena_budget_bytes", "Arena bytes that may be used right now."),
            ("energy_microjoules", "Energy spent on the job under way."),
            ("rung", "Plan in use; 0 has the most memory."),
            ("step", "Steps done of the job under way."),
            ("loss", "Loss of the last step."),
        )
    }
    for (fleet, name), members in groups.items():
        for device, entry in members:
            progress = _progress(entry)
            if progress is None:
                continue
            figures = {
                "arena_planned_bytes": progress.memory.planned_bytes,
                "arena_measured_bytes": progress.memory.measured_bytes,
                "arena_budget_bytes": progress.memory.budget_bytes,
                "energy_microjoules": progress.energy.microjoules,
                "rung": progress.rung,
                "step": progress.step,
                "loss": progress.loss,
            }
            for what, value in figures.items():
                if value is not None:
                    families[what].add_metric([fleet, name, device], value)
    yield from families.values()
