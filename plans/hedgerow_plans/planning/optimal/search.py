"""The any-time search: cheap starts, then bound and guide from the relaxation, and ruin and recreate in between.

All state is here: the best plan and the best bound so far are at hand whenever somebody asks. Nothing reads a clock:
`keep_going` says when to stop, and without it moves and solver nodes are counted, so that the same problem, seed and
limit give the same plan.
"""

from collections.abc import Iterable, Sequence

from hedgerow_plans.planning.abstract.workload import Workload
from hedgerow_plans.planning.optimal.exact import MOST_NODES, cheapest
from hedgerow_plans.planning.optimal.improve import Improver
from hedgerow_plans.planning.optimal.incumbent import Incumbent, Options, Standing
from hedgerow_plans.planning.optimal.staged import Staged
from hedgerow_plans.planning.optimal.starts import first_plans

__all__ = ["Options", "Search", "Standing", "search"]


class Search(Incumbent):
    """A search under way."""

    def __init__(self, work: Workload, budget: int, deadline: int | None, options: Options) -> None:
        super().__init__(work, budget, deadline, options)
        self.staged = Staged(self)
        self._improver: Improver | None = None

    def start(self, known: Iterable[Sequence[int]] = ()) -> None:
        """Find first plans."""
        first_plans(self, known)

    def improve(self, moves: int) -> None:
        """Ruin and recreate for a number of moves."""
        if self.best is None:
            return
        if self._improver is None:
            self._improver = Improver(self.work, self.budget, self.deadline, self.best, self.options.seed)
        else:
            self._improver.adopt(self.best)
        for _ in range(moves):
            if self.is_done() or not self.options.keep_going():
                return
            if self._improver.move(self.options.keep_going):
                self.take(self._improver.best)

    def refine(self) -> None:
        """Go on from the first plans, round by round: relax, then improve."""
        for round_number in range(self.options.rounds):
            before = self.standing()
            if self.is_done() or not self.options.keep_going():
                return
            if not self.staged.exhausted:
                self.staged.relax()
            if round_number == 0 and self.work.nodes <= MOST_NODES and not self.is_done():
                self.enumerate()
            self.improve(self.options.moves)
            if (before.cost, before.bound) == (self.cost, self.bound) and before.gap <= self.options.content:
                return

    def enumerate(self) -> None:
        """Settle a small workload by looking at all its states."""
        base = self.work.base_cost
        ceiling = None if self.cost is None or self.deadline is not None else self.cost - base
        proof = cheapest(self.work, self.budget, ceiling, self.options.keep_going)
        if proof is None:
            return
        if not self.options.slack_bytes:
            self.raise_bound(base + proof.overhead)
        if proof.codes is not None:
            self.take(proof.codes)


def search(
    work: Workload, budget: int, deadline: int | None, options: Options, known: Iterable[Sequence[int]] = ()
) -> Standing:
    """Search until the gap is small, the limits are reached, or `keep_going` says stop."""
    state = Search(work, budget, deadline, options)
    if state.is_possible():
        state.start(known)
        state.refine()
    return state.standing()
