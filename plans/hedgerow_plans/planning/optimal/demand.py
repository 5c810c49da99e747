"""A second way to start: run the nodes in order, evict when memory is short, fetch what is missing on demand.

What goes first is what is cheap to bring back, large, and not needed for long. Inputs of pending nodes are locked.
"""

from bisect import bisect_left

from hedgerow_plans.planning.abstract.workload import Workload
from hedgerow_plans.planning.optimal.repair import KeepGoing
from hedgerow_plans.planning.optimal.returns import Effort, Moment, cheapest_return
from hedgerow_plans.planning.optimal.timeline import Codes

_DEEPEST = 200
_LONGEST = 8
_VISITS_PER_NODE = 300
"""How many tensors may be looked at, for each node, in search of what to evict: beyond it others are quicker."""


class _Stuck(Exception):  # noqa: N818 - not an error, the search goes on without
    """Nothing more can be evicted, or it leads nowhere."""


class _Demand:
    def __init__(self, work: Workload, budget: int, patience: float, keep_going: KeepGoing) -> None:
        self._work, self._budget, self._patience, self._keep_going = work, budget, patience, keep_going
        self.codes: Codes = []
        self._live: dict[int, None] = {}
        self._stored: set[int] = set()
        self._used = 0
        self._effort = Effort(_VISITS_PER_NODE * work.nodes)

    def run(self) -> None:
        for step in range(self._work.nodes):
            self._make(step, frozenset(), step, 0)
            for tensor in [t for t in (*self._work.reads[step], *self._work.makes[step]) if t in self._live]:
                if self._next_read(tensor, step + 1) is None:
                    self._evict(tensor)

    def _make(self, node: int, locked: frozenset[int], step: int, depth: int) -> None:
        if depth > _DEEPEST or len(self.codes) > _LONGEST * self._work.nodes or not self._keep_going():
            raise _Stuck
        work = self._work
        mine = locked.union(work.reads[node])
        for tensor in work.reads[node]:
            if tensor not in self._live:
                self._fetch(tensor, mine, step, depth + 1)
        again = [tensor for tensor in work.makes[node] if tensor in self._live]
        for tensor in again:  # made once more beside its sister
            self._evict(tensor)
        born = work.scratch[node] + sum(work.sizes[tensor] for tensor in work.makes[node])
        self._room(born, mine, step)
        self.codes.append(node)
        for tensor in work.makes[node]:
            self._take(tensor)

    def _fetch(self, tensor: int, locked: frozenset[int], step: int, depth: int) -> None:
        work, maker = self._work, self._work.maker[tensor]
        back = cheapest_return(work, tensor, self._moment(step), float("inf"), self._effort)
        if back is None:
            raise _Stuck
        if back[1][-1] < 0:
            self._room(work.sizes[tensor], locked, step)
            self.codes.append(~tensor)
            self._stored.add(tensor)
            self._take(tensor)
        else:
            self._make(maker, locked, step, depth)

    def _moment(self, step: int) -> Moment:
        return Moment(self._live.__contains__, self._stored.__contains__, step)

    def _take(self, tensor: int) -> None:
        self._live[tensor] = None
        self._used += self._work.sizes[tensor]

    def _evict(self, tensor: int) -> None:
        del self._live[tensor]
        self._used -= self._work.sizes[tensor]

    def _next_read(self, tensor: int, step: int) -> int | None:
        readers = self._work.readers[tensor]
        at = bisect_left(readers, step)
        return readers[at] if at < len(readers) else None

    def _room(self, needed: int, locked: frozenset[int], step: int) -> None:
        while self._used + needed > self._budget:
            victim = self._victim(locked, step)
            if victim is None:
                raise _Stuck
            self._evict(victim)

    def _victim(self, locked: frozenset[int], step: int) -> int | None:
        if self._effort.visits_left < 0:
            raise _Stuck
        best, least, moment = None, float("inf"), self._moment(step)
        for tensor in self._live:
            size = self._work.sizes[tensor]
            if tensor in locked or not size:
                continue
            following = self._next_read(tensor, step)
            if following is None:
                return tensor
            worth = size * (following - step + 1) ** self._patience
            back = cheapest_return(self._work, tensor, moment, least * worth, self._effort)
            if back is not None and (back[0] + 1) / worth < least:
                best, least = tensor, (back[0] + 1) / worth
        return best


def on_demand(work: Workload, budget: int, patience: float, keep_going: KeepGoing) -> Codes | None:
    """Return a sequence that was run on demand, or None if it got stuck."""
    demand = _Demand(work, budget, patience, keep_going)
    try:
        demand.run()
    except _Stuck:
        return None
    return demand.codes
