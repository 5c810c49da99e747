"""The best plan and the best bound so far, and how a sequence of operations becomes a better plan."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hedgerow_plans.planning.abstract.workload import Workload
from hedgerow_plans.planning.optimal.improve import fill
from hedgerow_plans.planning.optimal.repair import KeepGoing, careful_repair, repair
from hedgerow_plans.planning.optimal.timeline import Codes, Timeline


def _forever() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Options:
    """What the search may spend, and when it is content."""

    seed: int = 0
    moves: int = 300  # ruin and recreate, after each round of the relaxation
    rounds: int = 8  # of the relaxation
    tolerance: float = 2e-4  # a gap that is as good as none
    content: float = 0.0  # a gap at which a round that brings nothing is the last
    slack_bytes: int = 0  # a plan may exceed the budget by this much all the same, so the bound must allow for it
    keep_going: KeepGoing = _forever
    report: Callable[["Standing"], None] = lambda _standing: None


@dataclass(frozen=True, slots=True)
class Standing:
    """The best plan so far, if there is one, and what no plan costs less than."""

    codes: Sequence[int] | None
    cost: int | None
    bound: int

    @property
    def gap(self) -> float:
        """How far the plan may be from the optimum, in parts of the bound."""
        if self.cost is None:
            return float("inf")
        return (self.cost - self.bound) / self.bound if self.bound else float(self.cost > 0)


class Incumbent:
    """What a search has so far; the same for all who take part in it."""

    def __init__(self, work: Workload, budget: int, deadline: int | None, options: Options) -> None:
        self.work, self.budget, self.deadline, self.options = work, budget, deadline, options
        self.best: Codes | None = None
        self.cost: int | None = None
        self.bound = work.base_cost

    def standing(self) -> Standing:
        """Return the best so far."""
        return Standing(self.best, self.cost, self.bound)

    def is_possible(self) -> bool:
        """Whether budget and deadline are not below what is needed in any case."""
        in_time = self.deadline is None or self.deadline >= self.work.base_time
        return in_time and self.budget >= self.work.floor_bytes

    def is_done(self) -> bool:
        """Whether the gap is small enough."""
        return self.standing().gap <= self.options.tolerance

    def offer(self, line: Timeline) -> bool:
        """Take a plan that fits if it is cheaper than the best."""
        if line.peak > self.budget or (self.deadline is not None and line.time > self.deadline):
            return False
        if self.cost is not None and line.cost >= self.cost:
            return False
        self.best, self.cost = list(line.codes), line.cost
        self.options.report(self.standing())
        return True

    def take(self, codes: Sequence[int]) -> bool:
        """Take a plan that somebody else found."""
        return self.offer(Timeline(self.work, codes))

    def raise_bound(self, bound: int) -> None:
        """Take a bound if it is better than the one so far."""
        if bound > self.bound:
            self.bound = bound
            self.options.report(self.standing())

    def offer_repaired(self, line: Timeline, *, careful: bool) -> None:
        """Repair a sequence and offer what comes out."""
        fits = careful_repair if careful else repair
        if fits(line, self.budget, self.options.keep_going):
            self.offer_filled(line)

    def offer_filled(self, line: Timeline) -> None:
        """Offer a sequence that fits, as it is and with memory filled that is left."""
        if line.peak <= self.budget:
            line.commit()
            self.offer(line)
            fill(line, self.budget, self.options.keep_going)
            self.offer(line)
