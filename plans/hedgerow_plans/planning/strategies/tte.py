"""TTE's reordering (Lin et al. 2022): run the training graph so that every gradient is applied and freed at once.

Nothing is computed twice. A node may run as soon as what it reads is there, and a tensor may change in place as soon as
all earlier readers have run. Of the orders that respect this, two are tried beside the graph's own: updates as early as
possible, and always the node that leaves the least in memory. Which parameters are trained at all, and how much of
them, is the sparse update's choice (`planning.sparse_update`).
"""

from collections.abc import Callable

from hedgerow_plans.graph.ir import Section
from hedgerow_plans.plan import Infeasible, Plan
from hedgerow_plans.planning.bounds import max_live_bytes
from hedgerow_plans.planning.problem import Problem
from hedgerow_plans.planning.sequence import Run, Sequence, straight, trace
from hedgerow_plans.planning.strategies.limits import KeepGoing, Limits, first_that_fits, forever

NAME = "tte"


def plan(problem: Problem, limits: Limits) -> Plan | Infeasible:
    """Plan with the order that needs the least."""
    return first_that_fits(problem, sequences(problem, limits.keep_going), NAME, limits)


def sequences(problem: Problem, _keep_going: KeepGoing = forever) -> list[Sequence]:
    """Return the orders, leanest first."""
    plain = straight(problem)
    bodies = [plain.body, *(tuple(map(Run, order)) for order in (_eager(problem), _leanest(problem)))]
    orders = dict.fromkeys(Sequence(plain.begin, body, plain.finish) for body in bodies)
    return sorted(orders, key=lambda sequence: max_live_bytes(problem, sequence, trace(problem, sequence)))


def _eager(problem: Problem) -> list[int]:
    """Return the graph's order with every update as soon as it may run."""
    return _scheduled(problem, lambda node, _live: (not problem.updates[node], node))


def _leanest(problem: Problem) -> list[int]:
    """Return the order that always runs the node after which the fewest bytes are in use."""
    readers: dict[int, set[int]] = {}
    for node in problem.section(Section.BODY):
        for tensor in problem.reads[node]:
            readers.setdefault(tensor, set()).add(node)

    def growth(node: int, done: set[int]) -> tuple[bool, int]:
        ends = [tensor for tensor in problem.reads[node] if readers[tensor] <= done | {node}]
        born = [tensor for tensor in problem.makes[node] if readers.get(tensor) or tensor in problem.outputs]
        return True, sum(map(problem.rounded, born)) - sum(map(problem.rounded, ends))

    return _scheduled(
        problem, lambda node, done: (False, node) if problem.updates[node] else (*growth(node, done), node)
    )


def _scheduled(problem: Problem, key: Callable[[int, set[int]], tuple[int, ...]]) -> list[int]:
    """Return the body's nodes in an order that works, at each turn the one with the least key."""
    waiting = _predecessors(problem)
    done: set[int] = set()
    order: list[int] = []
    while waiting:
        ready = [node for node, before in waiting.items() if before <= done]
        node = min(ready, key=lambda candidate: key(candidate, done))
        del waiting[node]
        done.add(node)
        order.append(node)
    return order


def _predecessors(problem: Problem) -> dict[int, set[int]]:
    """Return what must run before each node: makers of what it reads, and whoever needs the old value it changes."""
    before: dict[int, set[int]] = {}
    written: dict[int, int] = {}  # tensor to the node that made or changed it last
    read: dict[int, set[int]] = {}  # since then
    for node in problem.section(Section.BODY):
        mine = {written[tensor] for tensor in problem.touches[node] if tensor in written}
        for tensor in problem.updates[node]:
            mine |= read.pop(tensor, set())
        before[node] = mine - {node}
        for tensor in problem.touches[node]:
            read.setdefault(tensor, set()).add(node)
        for tensor in (*problem.makes[node], *problem.updates[node]):
            written[tensor] = node
            read[tensor] = set()
    return before
