"""How a tensor that left memory comes back: paged in, or made again together with whatever else is missing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hedgerow_plans.planning.abstract.workload import Workload

_DEEPEST = 120
"""How far back a chain of missing inputs is followed."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A place in a sequence: what holds a value there, what is in storage, and which node is next to run first."""

    is_alive: Callable[[int], bool]
    is_stored: Callable[[int], bool]
    step: int


@dataclass(slots=True)
class Effort:
    """How many tensors may still be looked at, over many returns: counted, so that runs repeat."""

    visits_left: float = float("inf")


@dataclass(slots=True)
class _Return:
    """The operations that bring a tensor back, as they are found."""

    work: Workload
    moment: Moment
    most: float
    effort: Effort
    cost: int = 0
    codes: list[int] = field(default_factory=list)
    present: set[int] = field(default_factory=set)

    def fetch(self, tensor: int, depth: int) -> bool:
        """Add what brings a tensor back; False if nothing does for less than the most it may cost."""
        self.effort.visits_left -= 1
        if tensor in self.present or (depth and self.moment.is_alive(tensor)):
            return True
        pages, maker = self._page_cost(tensor), self.work.maker[tensor]
        again = self.moment.step <= self.work.fences[maker] and depth < _DEEPEST
        if again and (pages is None or self.work.costs[maker] < pages):
            before = len(self.codes), self.cost, set(self.present)
            ceiling, self.most = self.most, self.most if pages is None else min(self.most, self.cost + pages - 1)
            made = self._make(maker, depth)
            self.most = ceiling
            if made:
                return True
            del self.codes[before[0] :]
            self.cost, self.present = before[1], before[2]
        return pages is not None and self._add(~tensor, pages, (tensor,))

    def _make(self, node: int, depth: int) -> bool:
        if self.cost + self.work.costs[node] > self.most:
            return False
        inputs = all(self.fetch(tensor, depth + 1) for tensor in self.work.reads[node])
        return inputs and self._add(node, self.work.costs[node], self.work.makes[node])

    def _add(self, code: int, cost: int, tensors: Sequence[int]) -> bool:
        self.cost += cost
        self.codes.append(code)
        self.present.update(tensors)
        return self.cost <= self.most

    def _page_cost(self, tensor: int) -> int | None:
        pages = self.work.pages[tensor]
        if pages is None:
            return None
        return pages[1] + (0 if self.moment.is_stored(tensor) else pages[0])


def cheapest_return(
    work: Workload, tensor: int, moment: Moment, most: float, effort: Effort | None = None
) -> tuple[int, list[int]] | None:
    """Return cost and operations that bring a tensor back, or None if that costs more than `most`."""
    search = _Return(work, moment, most, effort or Effort())
    return (search.cost, search.codes) if search.fetch(tensor, 0) else None
