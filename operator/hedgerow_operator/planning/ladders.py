"""Planning a ladder at the terminal: what was planned before is on disk, and searches run in several processes."""

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from hedgerow_operator.planning import worker
from hedgerow_operator.planning.memo import Memo
from hedgerow_operator.planning.requests import program_key
from hedgerow_operator.planning.worker import Outcome, Planned
from hedgerow_plans.planning.ladder import Found, Hope
from hedgerow_plans.program import ProgramRequest

Report = Callable[[int, int], None]
"""Told how many searches are done, of how many."""


@dataclass(frozen=True, slots=True)
class Means:
    """How a ladder is planned: by whom, for how long, in how many processes, and where ladders are kept."""

    strategy: str | None  # None: all that are installed
    limit_seconds: float
    jobs: int
    memo_folder: Path | None  # None: nothing is looked up, and nothing is kept


def plan_ladder(request: ProgramRequest, means: Means, report: Report) -> Outcome:
    """Return the program from the memo if it is there and still verifies, else plan it."""
    memo = Memo(means.memo_folder) if means.memo_folder else None
    key = program_key(request, means.strategy)
    if memo and (kept := memo.read(key)):
        checked = worker.check(kept, request)
        if isinstance(checked, Planned):
            return checked
    outcome = worker.plan(request, means.limit_seconds, means.strategy, Searches(means.jobs, report))
    if memo and isinstance(outcome, Planned) and not outcome.cut_short:
        memo.write(key, outcome.encoded)
    return outcome


class Searches:
    """Runs the searches of a ladder, in processes of their own if there are several, and tells how far they are."""

    def __init__(self, jobs: int, report: Report) -> None:
        self._jobs = jobs
        self._report = report

    def __call__(self, call: Callable[[Hope], Found], values: Iterable[Hope], /) -> Iterator[Found]:
        """Yield what came back, in the order of what was asked."""
        hopes = list(values)
        processes = min(self._jobs, len(hopes))
        if processes < 2:
            yield from self._told(map(call, hopes), len(hopes))
            return
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, mp_context=context) as pool:
            yield from self._told(pool.map(call, hopes), len(hopes))

    def _told(self, found: Iterable[Found], count: int) -> Iterator[Found]:
        self._report(0, count)
        for number, result in enumerate(found, start=1):
            self._report(number, count)
            yield result
