"""The true optimum of small workloads: the cheapest path through all states of memory and storage.

A state is how many nodes have run for the first time, which tensors are in memory, and which in storage, as sets of bits.
Paths are ordered by overhead, and none that reaches the cost of a known plan is followed, which is what keeps this
small. Writing to storage happens right after the first computation: later would cost the same.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from hedgerow_plans.planning.abstract.workload import Workload
from hedgerow_plans.planning.optimal.repair import KeepGoing
from hedgerow_plans.planning.optimal.timeline import Codes

MOST_NODES = 24
_MOST_STATES = 60_000

State = tuple[int, int, int]
"""Nodes that have run, bits of the tensors in memory, bits of those in storage."""


@dataclass(frozen=True, slots=True)
class Proof:
    """No plan has less overhead; `codes` is one that has exactly this, unless the ceiling was reached first."""

    overhead: int
    codes: Codes | None


def cheapest(work: Workload, budget: int, ceiling: int | None, keep_going: KeepGoing) -> Proof | None:
    """Return the least overhead below a ceiling, or the ceiling as a bound; None if it takes too many states."""
    begin: State = (0, 0, 0)
    known: dict[State, tuple[int, State, int | None]] = {begin: (0, begin, None)}
    queue: list[tuple[int, State]] = [(0, begin)]
    while queue:
        overhead, state = heapq.heappop(queue)
        if state[0] == work.nodes:
            return Proof(overhead, _codes(known, state))
        if known[state][0] < overhead:
            continue
        if len(known) > _MOST_STATES or not keep_going():
            return None
        for extra, following, code in _moves(work, budget, state):
            total = overhead + extra
            if (ceiling is None or total < ceiling) and (following not in known or total < known[following][0]):
                known[following] = (total, state, code)
                heapq.heappush(queue, (total, following))
    return None if ceiling is None else Proof(ceiling, None)


def _codes(known: dict[State, tuple[int, State, int | None]], state: State) -> Codes:
    codes: Codes = []
    while state != (0, 0, 0):
        _, state, code = known[state]
        if code is not None:
            codes.append(code)
    return codes[::-1]


def _moves(work: Workload, budget: int, state: State) -> Iterator[tuple[int, State, int | None]]:
    """Yield (cost, state after, operation or None) of everything that can be done."""
    frontier, live, stored = state
    used = 0
    for tensor, size in enumerate(work.sizes):
        if live >> tensor & 1:
            used += size
            yield 0, (frontier, live & ~(1 << tensor), stored), None
    yield from _storage_moves(work, budget - used, state)
    for node in range(frontier + 1):
        if node < frontier and frontier > work.fences[node]:
            continue
        made = _bits(work.makes[node])
        reads = _bits(work.reads[node])
        room = work.scratch[node] + sum(work.sizes[tensor] for tensor in work.makes[node])
        if live & reads == reads and not (live & made and made) and used + room <= budget:
            first = node == frontier
            yield 0 if first else work.costs[node], (frontier + first, live | made, stored), node


def _storage_moves(work: Workload, room: int, state: State) -> Iterator[tuple[int, State, int | None]]:
    frontier, live, stored = state
    for tensor, pages in enumerate(work.pages):
        bit = 1 << tensor
        if pages is None:
            continue
        if stored & bit and not live & bit and work.sizes[tensor] <= room:
            yield pages[1], (frontier, live | bit, stored), ~tensor
        if live & bit and not stored & bit and work.maker[tensor] == frontier - 1:
            yield pages[0], (frontier, live, stored | bit), None


def _bits(tensors: tuple[int, ...]) -> int:
    return sum(1 << tensor for tensor in tensors)
