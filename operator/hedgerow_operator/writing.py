"""Status writes: only what changed, and never more often than once a second for one object.

What should be written is handed over as often as anybody likes; a loop writes the newest of it. Figures that change all
the time (energy, steps) do not by themselves justify a write every second. A cluster that is away loses nothing: the
newest status is still here when it comes back.
"""

import asyncio
import logging
import time
from dataclasses import dataclass, field
from typing import Any

from hedgerow_operator.kube import ClusterError, Kube

SHORTEST_SECONDS = 1.0
FIGURES_SECONDS = 5.0
FIGURES = frozenset({"energy", "progressPercent", "memory", "columns", "lastSeen"})
IN_FLIGHT = 8
_TICK_SECONDS = 0.1
_LONGEST_BACKOFF_SECONDS = 30.0
_log = logging.getLogger(__name__)

Key = tuple[str, str, str]  # kind, namespace, name
Json = dict[str, Any]


@dataclass(slots=True)
class _Object:
    written: Json
    wanted: Json = field(default_factory=dict)
    next_write: float = 0.0
    next_figures: float = 0.0
    failures: int = 0


def merge_patch(before: Json, after: Json) -> Json:
    """Return the JSON merge patch that turns one object into another; lists are replaced as a whole."""
    patch: Json = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            if inner := merge_patch(old, value):
                patch[name] = inner
        elif name not in before or old != value:
            patch[name] = value
    return patch


class StatusWriter:
    """Writes statuses, newest only."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._objects: dict[Key, _Object] = {}
        self._limit = asyncio.Semaphore(IN_FLIGHT)
        self._task: asyncio.Task[None] | None = None

    def tasks(self) -> list[asyncio.Task[None]]:
        """Return what must be running from start to stop."""
        return [self._task] if self._task else []

    def known(self, key: Key, status: Json) -> None:
        """Note what the cluster has, so that a restarted operator does not write everything again."""
        self._objects.setdefault(key, _Object(written=status, wanted=status))

    def want(self, key: Key, status: Json) -> None:
        """Say what a status should be."""
        self._objects.setdefault(key, _Object(written={})).wanted = status

    def forget(self, key: Key) -> None:
        """Forget an object that is gone."""
        self._objects.pop(key, None)

    def start(self) -> None:
        """Begin writing."""
        self._task = asyncio.create_task(self._run(), name="status-writer")

    async def stop(self) -> None:
        """Write what is left, as far as the cluster lets us, and end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await asyncio.gather(*(self._write(key, entry) for key, entry in self._objects.items() if _change(entry)))

    async def _run(self) -> None:
        while True:
            now = time.monotonic()
            due = [(key, entry) for key, entry in self._objects.items() if _is_due(entry, now)]
            await asyncio.gather(*(self._write(key, entry) for key, entry in due))
            await asyncio.sleep(_TICK_SECONDS)

    async def _write(self, key: Key, entry: _Object) -> None:
        kind, namespace, name = key
        wanted = entry.wanted
        async with self._limit:
            now = time.monotonic()
            entry.next_write, entry.next_figures = now + SHORTEST_SECONDS, now + FIGURES_SECONDS
            try:
                body = await self._kube.patch_status(kind, namespace, name, merge_patch(entry.written, wanted))
            except ClusterError as problem:
                _log.warning("The status of %s %s/%s was not written: %s", kind, namespace, name, problem)
                _try_later(entry, now)
                return
            except Exception:  # noqa: BLE001 - one object must not keep the others from being written
                _log.exception("The status of %s %s/%s was not written.", kind, namespace, name)
                _try_later(entry, now)
                return
        entry.written, entry.failures = wanted, 0
        if body is None:
            self.forget(key)


def _try_later(entry: _Object, now: float) -> None:
    entry.failures = min(entry.failures + 1, 10)
    entry.next_write = now + min(2.0**entry.failures, _LONGEST_BACKOFF_SECONDS)


def _change(entry: _Object) -> Json:
    return {} if entry.wanted is entry.written else merge_patch(entry.written, entry.wanted)


def _is_due(entry: _Object, now: float) -> bool:
    if entry.wanted is entry.written or now < entry.next_write:
        return False
    change = _change(entry)
    if not change:
        entry.wanted = entry.written
        return False
    return now >= entry.next_figures or not FIGURES.issuperset(change)
