"""Eviction on demand: run the nodes in order, drop tensors when memory is short, make them again when they are read.

Strategies differ only in their score of what to drop first. No solver, and no look at anything but the budget, the live
tensors and what is already missing; so a device may use it for a budget that nobody planned for.

A tensor is dropped only if its whole ancestry may still run when it is read next: what is missing can always be made.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hedgerow_plans.planning.abstract.workload import Workload

_LONGEST = 12
"""How many operations for each node before it counts as going round in circles."""

_DEEPEST = 300
"""How long a chain of missing ancestors may be; Python's own stack ends somewhere behind it."""


class _Stuck(Exception):  # noqa: N818 - it is a way out, not an error
    """Nothing more can be dropped, or it leads nowhere."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A live tensor that may be dropped, with everything a score looks at."""

    size: int
    cost: int  # of its own node
    chain_cost: int  # of its node and all ancestors that would have to run again
    neighbourhood_cost: int  # the same and all missing tensors that depend on it
    idle: int  # cost spent since it was last used
    remaining_steps: int  # until it is read for the last time


Score = Callable[[Candidate], float]
"""What is lowest is dropped first."""


def evict_on_demand(work: Workload, capacity_bytes: int, score: Score) -> list[int] | None:
    """Return operation codes that stay within a capacity, or None if dropping in this order gets stuck."""
    if work.floor_bytes > capacity_bytes:
        return None
    run = _Run(work, capacity_bytes, score)
    try:
        run.all()
    except _Stuck:
        return None
    return run.codes


class _Run:
    """One pass over the nodes with a limited memory."""

    def __init__(self, work: Workload, capacity_bytes: int, score: Score) -> None:
        self._work, self._capacity, self._score = work, capacity_bytes, score
        self.codes: list[int] = []
        self._live: dict[int, int] = {}  # tensor to the clock of its last use
        self._used = 0
        self._clock = 0
        self._made = [False] * len(work.sizes)
        self._deadlines = _deadlines(work)

    def all(self) -> None:
        for step in range(self._work.nodes):
            self._execute(step, frozenset(), step, 0)

    def _execute(self, node: int, locked: frozenset[int], step: int, depth: int) -> None:
        """Run a node for the sake of `step`, after all it reads was brought back."""
        if depth > _DEEPEST or len(self.codes) > _LONGEST * self._work.nodes:
            raise _Stuck
        work = self._work
        mine = locked.union(work.reads[node])
        for tensor in work.reads[node]:
            if tensor not in self._live:
                self._execute(work.maker[tensor], mine, step, depth + 1)
        for sister in work.makes[node]:
            self._drop(sister)  # it is made once more beside the one that is missing
        self._make_room(work.scratch[node] + sum(work.sizes[tensor] for tensor in work.makes[node]), mine, step)
        self.codes.append(node)
        self._clock += work.costs[node] + 1
        for tensor in work.makes[node]:
            self._live[tensor] = self._clock
            self._made[tensor] = True
            self._used += work.sizes[tensor]
        self._let_go(node, locked, step)

    def _let_go(self, node: int, locked: frozenset[int], step: int) -> None:
        """Note the use of a node's tensors, and free those that nobody reads any more."""
        first_open = step + 1 if node == step else step
        for tensor in (*self._work.reads[node], *self._work.makes[node]):
            self._live[tensor] = self._clock
            is_wanted = tensor in locked or self._next_read(tensor, first_open) is not None
            if not is_wanted and not (node != step and tensor in self._work.makes[node]):
                self._drop(tensor)

    def _make_room(self, wanted_bytes: int, locked: frozenset[int], step: int) -> None:
        while self._used + wanted_bytes > self._capacity:
            candidates = [tensor for tensor in self._live if tensor not in locked and self._may_drop(tensor, step)]
            if not candidates:
                raise _Stuck
            self._drop(min(candidates, key=lambda tensor: (self._score(self._candidate(tensor, step)), tensor)))

    def _may_drop(self, tensor: int, step: int) -> bool:
        reader = self._next_read(tensor, step)
        return reader is None or reader <= self._deadlines[self._work.maker[tensor]]

    def _drop(self, tensor: int) -> None:
        if self._live.pop(tensor, None) is not None:
            self._used -= self._work.sizes[tensor]

    def _next_read(self, tensor: int, step: int) -> int | None:
        readers = self._work.readers[tensor]
        at = bisect_left(readers, step)
        return readers[at] if at < len(readers) else None

    def _candidate(self, tensor: int, step: int) -> Candidate:
        work = self._work
        chain = set(self._chain(tensor))
        ahead = {work.maker[other] for other in self._missing_behind(tensor)}
        readers = work.readers[tensor]
        return Candidate(
            size=work.sizes[tensor],
            cost=work.costs[work.maker[tensor]],
            chain_cost=sum(work.costs[node] for node in chain),
            neighbourhood_cost=sum(work.costs[node] for node in chain | ahead),
            idle=self._clock - self._live[tensor],
            remaining_steps=max(readers[-1] - step, 0) if readers else 0,
        )

    def _chain(self, tensor: int) -> Iterator[int]:
        """Yield the nodes that would have to run to bring a tensor back."""
        stack, seen = [self._work.maker[tensor]], set()
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                yield node
                stack += [self._work.maker[read] for read in self._work.reads[node] if read not in self._live]

    def _missing_behind(self, tensor: int) -> Iterator[int]:
        """Yield the missing tensors that cannot be made without this one."""
        stack, seen = [tensor], {tensor}
        while stack:
            for reader in self._work.readers[stack.pop()]:
                for made in self._work.makes[reader]:
                    if made not in seen and self._made[made] and made not in self._live:
                        seen.add(made)
                        stack.append(made)
                        yield made


def _deadlines(work: Workload) -> list[int]:
    """By node: the last step for whose sake it and its whole ancestry may run again."""
    deadlines: list[int] = []
    for node, fence in enumerate(work.fences):
        before = [deadlines[work.maker[tensor]] for tensor in work.reads[node]]
        deadlines.append(min((fence, *before)) if fence != node else -1)
    return deadlines
