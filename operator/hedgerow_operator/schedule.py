"""When which fleet is looked at: as soon as something happened, but never so often that nothing else gets its turn.

After a look that took long the next one waits in proportion, so that a large fleet costs at most a fifth of the time.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine

from hedgerow_operator.kube import ClusterError

SHORTEST_SECONDS = 0.1
REST_FACTOR = 4.0
LONGEST_BACKOFF_SECONDS = 30.0
_log = logging.getLogger(__name__)


class Schedule:
    """Fleets that are due, and the loop that looks at them one after the other."""

    def __init__(self, reconcile: Callable[[str], Awaitable[None]]) -> None:
        self._reconcile = reconcile
        self._due: dict[str, float] = {}
        self._earliest: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._wake = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None
        self._errands: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin to look."""
        self._loop = asyncio.create_task(self._run(), name="schedule")

    def tasks(self) -> list[asyncio.Task[None]]:
        """Return what must be running from start to stop."""
        return [self._loop] if self._loop else []

    async def stop(self) -> None:
        """Stop looking."""
        tasks = [*self.tasks(), *self._errands]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def mark(self, fleet: str, after_seconds: float) -> None:
        """Have a fleet looked at after so many seconds, or earlier if that was asked before."""
        at = asyncio.get_running_loop().time() + after_seconds
        self._due[fleet] = min(at, self._due.get(fleet, at))
        self._wake.set()

    def soon(self, work: Coroutine[None, None, None]) -> None:
        """Do something that need not be waited for; what goes wrong is logged."""
        task = asyncio.create_task(_tolerantly(work))
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            now = loop.time()
            times = {fleet: max(at, self._earliest.get(fleet, 0.0)) for fleet, at in self._due.items()}
            for fleet in [fleet for fleet, at in times.items() if at <= now]:
                del self._due[fleet]
                await self._look(fleet)
            self._wake.clear()
            times = {fleet: max(at, self._earliest.get(fleet, 0.0)) for fleet, at in self._due.items()}
            timeout = max(0.0, min(times.values()) - loop.time()) if times else None
            try:
                await asyncio.wait_for(self._wake.wait(), timeout)
            except TimeoutError:
                continue

    async def _look(self, fleet: str) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            await self._reconcile(fleet)
            self._failures.pop(fleet, None)
        except ClusterError as problem:
            self._retry(fleet, str(problem))
        except Exception as problem:  # noqa: BLE001 - one fleet must not take the others with it
            _log.exception("Fleet %s could not be reconciled.", fleet)
            self._retry(fleet, str(problem))
        self._earliest[fleet] = loop.time() + max(SHORTEST_SECONDS, REST_FACTOR * (loop.time() - began))

    def _retry(self, fleet: str, problem: str) -> None:
        failures = self._failures[fleet] = min(self._failures.get(fleet, 0) + 1, 10)
        delay_seconds = min(2.0 ** (failures - 1), LONGEST_BACKOFF_SECONDS)
        _log.warning("Fleet %s is looked at again in %.0f s: %s", fleet, delay_seconds, problem)
        self.mark(fleet, delay_seconds)


async def _tolerantly(work: Coroutine[None, None, None]) -> None:
    try:
        await work
    except ClusterError as problem:
        _log.warning("%s", problem)
    except Exception:  # noqa: BLE001 - nobody waits for it, so it would vanish
        _log.exception("Something was not done; it is tried again with the next event or list.")
