"""Progress while devices train: a table that stays in place on a terminal, a line now and then elsewhere."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.table import Table

from demo.watching import DeviceView

SECONDS_BETWEEN_LINES = 5.0


class Show:
    """Shows the fleet in one of the two ways."""

    def __init__(self, console: Console, live: Live | None) -> None:
        self._console = console
        self._live = live
        self._last_line_at = 0.0

    def update(self, devices: Mapping[str, DeviceView]) -> None:
        """Show the devices as they are now."""
        if self._live is not None:
            self._live.update(_table(devices))
        elif time.monotonic() - self._last_line_at > SECONDS_BETWEEN_LINES:
            self._last_line_at = time.monotonic()
            self._console.print("  ".join(_word(view) for view in devices.values()), soft_wrap=True)

    def say(self, sentence: str) -> None:
        """Say something above the table."""
        self._console.print(sentence, soft_wrap=True, highlight=False)


@contextmanager
def show(console: Console) -> Iterator[Show]:
    """Show the fleet while the context lasts."""
    if console.is_terminal:
        with Live(console=console, refresh_per_second=4) as live:
            yield Show(console, live)
    else:
        yield Show(console, None)


def _table(devices: Mapping[str, DeviceView]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("DEVICE", "CLASS", "STATE", "PROGRESS", "RUNG", "MEMORY", "BUDGET", "ACCURACY", "CHECKPOINT"):
        table.add_column(heading, no_wrap=True)
    for view in devices.values():
        table.add_row(
            view.name,
            view.device_class,
            view.state,
            "" if view.progress_percent is None else f"{view.progress_percent}%",
            _rung(view),
            _kibibytes(view.planned_bytes),
            _kibibytes(view.budget_bytes),
            f"{_accuracy(view.accuracy_before)} → {_accuracy(view.accuracy_after or view.accuracy_now)}",
            view.checkpoint,
        )
    return table


def _word(view: DeviceView) -> str:
    return f"{view.name} {view.state} {view.progress_percent or 0}% rung {_rung(view)}"


def _rung(view: DeviceView) -> str:
    return "" if view.rung is None else f"{view.rung + 1}/{view.rungs}"


def _kibibytes(count: int | None) -> str:
    return "" if count is None else f"{count / 1024:.0f} KiB"


def _accuracy(value: float | None) -> str:
    return "…" if value is None else f"{value:.2f}"
