"""The table: ratios with their spread and the bound beside them, as text for people and as JSON for machines."""

import statistics
from collections.abc import Iterable, Sequence

from bench_core.rounds import TORCH, TUNED, Results

_MEGABYTE = 1e6
_COLUMNS = (
    "work",
    "threads",
    "ours ms",
    "torch ms",
    "ratio (spread)",
    "bound",
    "tuned ms",
    "ratio to tuned",
    "ours MB",
    "torch MB",
    "memory ratio",
    "bound",
    "rounds",
)


def over_bounds(result: Results) -> list[str]:
    """Return a sentence for each bound that a case exceeds."""
    workload, threads = result.case.workload, result.case.threads
    found = []
    time, memory = (statistics.median(result.ratios(measure, TORCH)) for measure in ("median_ms", "peak_bytes"))
    limit = workload.bounds.time.get(threads)
    if limit is not None and time > limit:
        found.append(f"{workload.title}, {threads} threads: time {time:.2f} of torch's, the bound is {limit:.2f}.")
    if memory > workload.bounds.memory:
        bound = f"the bound is {workload.bounds.memory:.2f}"
        found.append(f"{workload.title}, {threads} threads: memory {memory:.2f} of torch's, {bound}.")
    return found


def _spread(ratios: Sequence[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f})"


def _bound(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _row(result: Results) -> tuple[str, ...]:
    workload, threads = result.case.workload, result.case.threads
    if not result.rounds:
        return (workload.title, str(threads), *("-" for _ in _COLUMNS[3:]), f"0, {result.thrown_out} thrown out")
    left_out = f", {result.thrown_out} thrown out" if result.thrown_out else ""
    return (
        workload.title,
        str(threads),
        f"{result.median('median_ms', 'ours'):.2f}",
        f"{result.median('median_ms', TORCH):.2f}",
        _spread(result.ratios("median_ms", TORCH)),
        _bound(workload.bounds.time.get(threads)),
        f"{result.median('median_ms', TUNED):.2f}",
        _spread(result.ratios("median_ms", TUNED)),
        f"{result.median('peak_bytes', 'ours') / _MEGABYTE:.1f}",
        f"{result.median('peak_bytes', TORCH) / _MEGABYTE:.1f}",
        f"{statistics.median(result.ratios('peak_bytes', TORCH)):.2f}",
        _bound(workload.bounds.memory),
        f"{len(result.rounds)}{left_out}",
    )


def markdown(title: str, surroundings: str, results: Iterable[Results]) -> str:
    """Return the report as Markdown."""
    rows = [_COLUMNS, *(_row(result) for result in results)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_COLUMNS))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join((f"# {title}", "", surroundings, "", *lines, ""))


def figures(results: Iterable[Results]) -> list[str]:
    """Return the ratios as lines that a thorough run collects."""
    return [
        f"FIGURE {result.case.workload.title}, {result.case.threads} threads, of PyTorch's: "
        f"time {_spread(result.ratios('median_ms', TORCH))}, "
        f"memory {statistics.median(result.ratios('peak_bytes', TORCH)):.2f}"
        for result in results
        if result.rounds
    ]


def as_json(results: Iterable[Results]) -> list[dict[str, object]]:
    """Return every round that counted, as plain values."""
    return [
        {
            "workload": result.case.workload.name,
            "threads": result.case.threads,
            "thrown_out": result.thrown_out,
            "rounds": [{name: sample.as_json() for name, sample in each.items()} for each in result.rounds],
        }
        for result in results
    ]
