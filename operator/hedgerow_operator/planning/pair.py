"""Two processes on one problem: the relaxation here, ruin and recreate in a child; better plans go both ways.

The child is only ever a help: if it dies, the search goes on without it.
"""

import contextlib
import multiprocessing
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection

from hedgerow_plans.planning.abstract.workload import Workload
from hedgerow_plans.planning.optimal.exact import MOST_NODES
from hedgerow_plans.planning.optimal.improve import Improver
from hedgerow_plans.planning.optimal.search import Options, Search, Standing

_LISTEN_SECONDS = 0.05


def search_in_pair(work: Workload, budget: int, deadline: int | None, options: Options) -> Standing:
    """Search with a second process that improves the best plan meanwhile."""
    state = Search(work, budget, deadline, options)
    if not state.is_possible():
        return state.standing()
    state.start()
    if not state.is_done() and work.nodes <= MOST_NODES:
        state.enumerate()
    if state.is_done() or not options.keep_going():
        return state.standing()
    with _Helper(work, budget, deadline, options.seed) as helper:
        while not state.is_done() and options.keep_going() and not state.staged.exhausted:
            state.staged.relax()
            helper.exchange(state)
        while not state.is_done() and options.keep_going() and helper.is_working():
            time.sleep(_LISTEN_SECONDS)
            helper.exchange(state)
    return state.standing()


class _Helper:
    """The child process, once there is a plan to improve."""

    def __init__(self, work: Workload, budget: int, deadline: int | None, seed: int) -> None:
        self._arguments = (work, budget, deadline, seed)
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None
        self._sent: int | None = None

    def __enter__(self) -> "_Helper":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.join()

    def is_working(self) -> bool:
        return self._process is not None and self._process.is_alive()

    def exchange(self, state: Search) -> None:
        """Take what the child found, and give it what was found here."""
        with contextlib.suppress(OSError, EOFError):  # the child is gone
            for codes in self._received():
                state.take(codes)
            if state.best is not None and state.cost != self._sent:
                self._sent = state.cost
                self._send(list(state.best))

    def _received(self) -> Iterator[list[int]]:
        while self._pipe is not None and self._pipe.poll():
            yield self._pipe.recv()

    def _send(self, codes: list[int]) -> None:
        if self._pipe is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=improve, args=(*self._arguments, codes, theirs), daemon=True)
            self._process.start()
            theirs.close()
        else:
            self._pipe.send(codes)


def improve(  # noqa: PLR0917 - what a process is started with
    work: Workload, budget: int, deadline: int | None, seed: int, codes: list[int], pipe: Connection
) -> None:
    """Improve a plan until the parent ends this process, sending every improvement."""
    improver = Improver(work, budget, deadline, codes, seed)
    with contextlib.suppress(OSError, EOFError, KeyboardInterrupt):
        while True:
            while pipe.poll():
                improver.adopt(pipe.recv())
            if improver.move(lambda: True):
                pipe.send(improver.best)


def time_limit(seconds: float) -> Callable[[], bool]:
    """Return a question that is answered with no when the time is up."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end
