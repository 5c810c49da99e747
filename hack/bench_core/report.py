"""The table: ratios with their spread and the bound beside them, as text for people and as JSON for machines."""

import statistics
from collections.abc import Iterable, Sequence

from bench_core.rounds import NATIVE, TORCH, TUNED, Results

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


_NATIVE_COLUMNS = (
    "work, compiled backend",
    "threads",
    "native ms",
    "ratio to torch (spread)",
    "bound",
    "ratio to tuned (spread)",
    "bound",
    "native MB",
    "memory ratio",
    "bound",
)


def _native_ratios(result: Results) -> list[tuple[str, str, list[float], float | None]]:
    """Return what is bounded of the compiled backend: name, words for it, ratios, bound."""
    bounds, threads = result.case.workload.native, result.case.threads
    time, tuned, memory = None, None, None
    if bounds is not None:
        time, tuned, memory = bounds.time.get(threads), bounds.tuned_time.get(threads), bounds.memory
    return [
        ("time", "torch's", result.ratios("median_ms", TORCH, NATIVE), time),
        ("time", "tuned torch's", result.ratios("median_ms", TUNED, NATIVE), tuned),
        ("memory", "torch's", result.ratios("peak_bytes", TORCH, NATIVE), memory),
    ]


def over_native_bounds(result: Results) -> list[str]:
    """Return a sentence for each bound that the compiled backend exceeds."""
    title = f"{result.case.workload.title}, {result.case.threads} threads, compiled"
    return [
        f"{title}: {what} {statistics.median(ratios):.2f} of {whose}, the bound is {bound:.2f}."
        for what, whose, ratios, bound in (_native_ratios(result) if result.has_native else [])
        if bound is not None and statistics.median(ratios) > bound
    ]


def _native_row(result: Results) -> tuple[str, ...]:
    (_, _, torch, bound), (_, _, tuned, tuned_bound), (_, _, memory, memory_bound) = _native_ratios(result)
    return (
        result.case.workload.title,
        str(result.case.threads),
        f"{result.median('median_ms', NATIVE):.2f}",
        _spread(torch),
        _bound(bound),
        _spread(tuned),
        _bound(tuned_bound),
        f"{result.median('peak_bytes', NATIVE) / _MEGABYTE:.1f}",
        f"{statistics.median(memory):.2f}",
        _bound(memory_bound),
    )


def too_few(result: Results, fewest: int) -> list[str]:
    """Return a sentence if fewer rounds count than a verdict needs."""
    workload, count = result.case.workload, len(result.rounds)
    if count >= fewest:
        return []
    counts = f"{count} rounds count and {result.thrown_out} were thrown out beside a busy neighbour"
    remedy = f"a verdict needs {fewest}. Measure again on a quiet machine."
    return [f"{workload.title}, {result.case.threads} threads: {counts}; {remedy}"]


def over_bounds(result: Results) -> list[str]:
    """Return a sentence for each bound that a case exceeds."""
    if not result.rounds:
        return []
    workload, threads = result.case.workload, result.case.threads
    found = []
    time, memory = (statistics.median(result.ratios(measure, TORCH)) for measure in ("median_ms", "peak_bytes"))
    limit = workload.bounds.time.get(threads)
    if limit is not None and time > limit:
        found.append(f"{workload.title}, {threads} threads: time {time:.2f} of torch's, the bound is {limit:.2f}.")
    if memory > workload.bounds.memory:
        bound = f"the bound is {workload.bounds.memory:.2f}"
        found.append(f"{workload.title}, {threads} threads: memory {memory:.2f} of torch's, {bound}.")
    return found + over_native_bounds(result)


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
    results = list(results)
    lines = _table([_COLUMNS, *(_row(result) for result in results)])
    compiled = [_native_row(result) for result in results if result.has_native]
    if compiled:
        lines += ["", *_table([_NATIVE_COLUMNS, *compiled])]
    return "\n".join((f"# {title}", "", surroundings, "", *lines, ""))


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]


def figures(results: Iterable[Results]) -> list[str]:
    """Return the ratios as lines that a thorough run collects."""
    results = list(results)
    return [*_plain_figures(results), *_native_figures(results)]


def _native_figures(results: Iterable[Results]) -> list[str]:
    return [
        f"FIGURE {result.case.workload.title}, {result.case.threads} threads, compiled, {what} of {whose}: "
        f"{_spread(ratios)}"
        for result in results
        if result.has_native
        for what, whose, ratios, _ in _native_ratios(result)
    ]


def _plain_figures(results: Iterable[Results]) -> list[str]:
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
