"""A training problem as an abstract workload, and operation sequences of the workload as sequences of the problem.

Only the body is scheduled: what `begin` makes lies in memory through all of it, and is taken off the budget like the
residents. A node that changes something in place runs once; a node that reads or makes what is changed later may run
again only before that. What somebody reads at the end is read by a last node that does nothing.
"""

from collections.abc import Sequence as Row
from dataclasses import dataclass

from hedgerow_plans.graph.ir import ALIGNMENT_BYTES, Section, round_up
from hedgerow_plans.planning.abstract.workload import Pages, Workload
from hedgerow_plans.planning.problem import Problem
from hedgerow_plans.planning.sequence import Fetch, Operation, Run, Sequence, straight


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a problem: its workload, and how that speaks of nodes and tensors."""

    problem: Problem
    work: Workload
    nodes: tuple[int, ...]  # of the graph, by node of the workload
    tensors: tuple[int, ...]  # of the graph, by tensor of the workload
    beside_bytes: int  # residents, and what lies in memory through all of the body

    def room(self, budget_bytes: int) -> int:
        """Return the bytes that the body's tensors may take up within a budget, every one of them rounded up."""
        return max(0, (budget_bytes - self.beside_bytes) // ALIGNMENT_BYTES * ALIGNMENT_BYTES)

    def widest_room(self, budget_bytes: int) -> int:
        """Return the bytes no plan can exceed: the topmost tensor may end before its rounding does."""
        return max(0, round_up(budget_bytes - self.beside_bytes))

    def sequence(self, codes: Row[int]) -> Sequence:
        """Return what a plan of the workload runs."""
        plain = straight(self.problem)
        operations: list[Operation] = []
        for code in codes:
            if code < 0:
                operations.append(Fetch(self.tensors[~code]))
            elif code < len(self.nodes):
                operations.append(Run(self.nodes[code]))
        return Sequence(plain.begin, tuple(operations), plain.finish)

    def codes(self, sequence: Sequence) -> list[int]:
        """Return what the body of a sequence runs, as a plan of the workload."""
        node = {number: code for code, number in enumerate(self.nodes)}
        tensor = {number: code for code, number in enumerate(self.tensors)}
        codes = [node[step.node] if isinstance(step, Run) else ~tensor[step.tensor] for step in sequence.body]
        return [*codes, len(self.nodes)]


def body_of(problem: Problem) -> Body:
    """Look at the body of a problem as a workload."""
    nodes = problem.section(Section.BODY)
    tensors = tuple(tensor for node in nodes for tensor in problem.makes[node])
    number = {tensor: index for index, tensor in enumerate(tensors)}
    outputs = tuple(number[tensor] for tensor in sorted(problem.outputs & number.keys()))
    changed = {tensor for updates in problem.updates for tensor in updates}
    work = Workload(
        sizes=tuple(problem.rounded(tensor) for tensor in tensors),
        pages=tuple(None if tensor in changed else _pages(problem, tensor) for tensor in tensors),
        reads=(*(tuple(number[t] for t in problem.reads[node] if t in number) for node in nodes), outputs),
        makes=(*(tuple(number[tensor] for tensor in problem.makes[node]) for node in nodes), ()),
        costs=(*(_cost(problem, node) for node in nodes), 0),
        times=(*(problem.flops[node] for node in nodes), 0),
        scratch=(*(round_up(problem.scratch_bytes[node]) for node in nodes), 0),
        fences=(*_fences(problem, nodes), len(nodes)),
    )
    return Body(problem, work, nodes, tensors, problem.residents.bytes + _through_bytes(problem))


def _cost(problem: Problem, node: int) -> int:
    """Return picojoules, or operations where the class says nothing of energy."""
    return problem.flops[node] * (problem.costs.picojoules_per_flop or 1)


def _pages(problem: Problem, tensor: int) -> Pages | None:
    costs, size = problem.costs, problem.bytes[tensor]
    if not costs.page_out_bytes_per_second or not costs.page_in_bytes_per_second:
        return None
    if costs.picojoules_per_flop:
        return size * costs.picojoules_per_byte_out, size * costs.picojoules_per_byte_in
    speed = costs.flops_per_second
    return -(-size * speed // costs.page_out_bytes_per_second), -(-size * speed // costs.page_in_bytes_per_second)


def _fences(problem: Problem, nodes: Row[int]) -> list[int]:
    """Return, by node of the body, the next node that changes what it reads or makes; its own if it changes any."""
    next_change: dict[int, int] = {}
    fences = [len(nodes) + 1] * len(nodes)
    for index in range(len(nodes) - 1, -1, -1):
        node = nodes[index]
        touched = (*problem.touches[node], *problem.makes[node])
        fences[index] = min((next_change.get(tensor, len(nodes) + 1) for tensor in touched), default=len(nodes) + 1)
        if problem.updates[node]:
            fences[index] = index
        next_change.update(dict.fromkeys(problem.updates[node], index))
    return fences


def _through_bytes(problem: Problem) -> int:
    """Return the bytes of what is made before the body and is there until its end."""
    later = [node for section in (Section.BODY, Section.FINISH) for node in problem.section(section)]
    wanted = problem.outputs.union(*(problem.reads[node] for node in later))
    made = [tensor for node in problem.section(Section.BEGIN) for tensor in problem.makes[node]]
    return sum(problem.rounded(tensor) for tensor in made if tensor in wanted)
