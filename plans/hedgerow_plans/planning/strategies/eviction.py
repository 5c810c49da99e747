"""Eviction on demand: run the nodes in order, drop tensors when memory is short, make them again when they are read.

Strategies differ only in their score of what to drop first. No solver, and no look at anything but the budget, the live
tensors and what is already missing; so a device may use it for a budget that nobody planned for.

A tensor is dropped only if its whole ancestry may still run when it is read next: what is missing can always be made.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from hedgerow_plans.planning.abstract.workload import Workload

_LONGEST = 12
"""How many operations for each node before it counts as going round in circles."""

_DEEPEST = 300
"""How long a chain of missing ancestors may be; Python's own stack ends somewhere behind it."""


_BETWEEN_QUESTIONS = 512
"""Steps of a long pass after which somebody may have stopped waiting; whoever starts passes asks between short ones."""


class _Stuck(Exception):  # noqa: N818 - it is a way out, not an error
    """Nothing more can be dropped, or it leads nowhere."""


class Candidate(Protocol):
    """A live tensor that may be dropped; what a score does not ask for is not computed."""

    @property
    def size(self) -> int:
        """Its bytes."""

    @property
    def cost(self) -> int:
        """What its own node costs."""

    @property
    def chain_cost(self) -> int:
        """What its node and all ancestors that would have to run again cost."""

    @property
    def neighbourhood_cost(self) -> int:
        """The same and all missing tensors that depend on it."""

    @property
    def idle(self) -> int:
        """What was spent since it was last used."""

    @property
    def remaining_steps(self) -> int:
        """How many steps until it is read for the last time."""


Score = Callable[[Candidate], float]
"""What is lowest is dropped first."""


def evict_on_demand(
    work: Workload, capacity_bytes: int, score: Score, keep_going: Callable[[], bool] = lambda: True
) -> list[int] | None:
    """Return operation codes that stay within a capacity, or None if this order gets stuck or nobody waits for it."""
    if work.floor_bytes > capacity_bytes:
        return None
    run = _Run(work, capacity_bytes, score)
    try:
        run.all(keep_going)
    except _Stuck:
        return None
    return run.codes


class _Run:
    """One pass over the nodes with a limited memory."""

    def __init__(self, work: Workload, capacity_bytes: int, score: Score) -> None:
        self.work, self._capacity, self._score = work, capacity_bytes, score
        self.codes: list[int] = []
        self._live: dict[int, int] = {}  # tensor to the clock of its last use
        self._used = 0
        self._clock = 0
        self._made = [False] * len(work.sizes)
        self._deadlines = _deadlines(work)

    def all(self, keep_going: Callable[[], bool]) -> None:
        for step in range(self.work.nodes):
            if step % _BETWEEN_QUESTIONS == _BETWEEN_QUESTIONS - 1 and not keep_going():
                raise _Stuck
            self._execute(step, frozenset(), step, 0)

    def _execute(self, node: int, locked: frozenset[int], step: int, depth: int) -> None:
        """Run a node for the sake of `step`, after all it reads was brought back."""
        if depth > _DEEPEST or len(self.codes) > _LONGEST * self.work.nodes:
            raise _Stuck
        work = self.work
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
        for tensor in (*self.work.reads[node], *self.work.makes[node]):
            self._live[tensor] = self._clock
            is_wanted = tensor in locked or self._next_read(tensor, first_open) is not None
            if not is_wanted and not (node != step and tensor in self.work.makes[node]):
                self._drop(tensor)

    def _make_room(self, wanted_bytes: int, locked: frozenset[int], step: int) -> None:
        while self._used + wanted_bytes > self._capacity:
            candidates = [tensor for tensor in self._live if tensor not in locked and self._may_drop(tensor, step)]
            if not candidates:
                raise _Stuck
            self._drop(min(candidates, key=lambda tensor: (self._score(_Live(self, tensor, step)), tensor)))

    def _may_drop(self, tensor: int, step: int) -> bool:
        reader = self._next_read(tensor, step)
        return reader is None or reader <= self._deadlines[self.work.maker[tensor]]

    def _drop(self, tensor: int) -> None:
        if self._live.pop(tensor, None) is not None:
            self._used -= self.work.sizes[tensor]

    def _next_read(self, tensor: int, step: int) -> int | None:
        readers = self.work.readers[tensor]
        at = bisect_left(readers, step)
        return readers[at] if at < len(readers) else None

    def idle(self, tensor: int) -> int:
        """Return what was spent since a tensor was last used."""
        return self._clock - self._live[tensor]

    def chain(self, tensor: int) -> Iterator[int]:
        """Yield the nodes that would have to run to bring a tensor back."""
        stack, seen = [self.work.maker[tensor]], set()
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                yield node
                stack += [self.work.maker[read] for read in self.work.reads[node] if read not in self._live]

    def missing_behind(self, tensor: int) -> Iterator[int]:
        """Yield the missing tensors that cannot be made without this one."""
        stack, seen = [tensor], {tensor}
        while stack:
            for reader in self.work.readers[stack.pop()]:
                for made in self.work.makes[reader]:
                    if made not in seen and self._made[made] and made not in self._live:
                        seen.add(made)
                        stack.append(made)
                        yield made


@dataclass(frozen=True, slots=True)
class _Live:
    """A candidate at a step of a run."""

    run: _Run
    tensor: int
    step: int

    @property
    def size(self) -> int:
        return self.run.work.sizes[self.tensor]

    @property
    def cost(self) -> int:
        return self.run.work.costs[self.run.work.maker[self.tensor]]

    @property
    def chain_cost(self) -> int:
        return sum(map(self.run.work.costs.__getitem__, self.run.chain(self.tensor)))

    @property
    def neighbourhood_cost(self) -> int:
        ahead = {self.run.work.maker[other] for other in self.run.missing_behind(self.tensor)}
        return sum(map(self.run.work.costs.__getitem__, ahead.union(self.run.chain(self.tensor))))

    @property
    def idle(self) -> int:
        return self.run.idle(self.tensor)

    @property
    def remaining_steps(self) -> int:
        readers = self.run.work.readers[self.tensor]
        return max(readers[-1] - self.step, 0) if readers else 0


def _deadlines(work: Workload) -> list[int]:
    """By node: the last step for whose sake it and its whole ancestry may run again."""
    deadlines: list[int] = []
    for node, fence in enumerate(work.fences):
        before = [deadlines[work.maker[tensor]] for tensor in work.reads[node]]
        deadlines.append(min((fence, *before)) if fence != node else -1)
    return deadlines
