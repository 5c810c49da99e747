"""Training graphs as workloads, and operation codes as sequences of a training graph.

Only the body is scheduled: what `begin` makes lives all through it and is taken off the budget, together with the
residents. A last node of no cost reads the graph's outputs, because somebody outside does when the body ends. A node
may run again until something it reads, makes or changes is changed in place.
"""

from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Row
from dataclasses import dataclass

from hedgerow_plans.graph.ir import Section, round_up
from hedgerow_plans.planning.abstract.workload import Pages, Workload
from hedgerow_plans.planning.problem import Problem
from hedgerow_plans.planning.sequence import Fetch, Operation, Run, Sequence, straight


@dataclass(frozen=True, slots=True)
class BodyWork:
    """The body of a training graph as a workload, and which node and tensor of the graph its numbers mean."""

    work: Workload
    nodes: tuple[int, ...]
    tensors: tuple[int, ...]
    kept_bytes: int  # residents, and what lives through the body

    def capacity(self, budget_bytes: int) -> int:
        """Return what of a budget is left for the body."""
        return budget_bytes - self.kept_bytes

    def sequence(self, problem: Problem, codes: Row[int]) -> Sequence:
        """Return operation codes as a sequence of the graph."""
        plain = straight(problem)
        return Sequence(plain.begin, tuple(self._operations(codes)), plain.finish)

    def _operations(self, codes: Row[int]) -> Iterator[Operation]:
        for code in codes:
            if code < 0:
                yield Fetch(self.tensors[~code])
            elif code < len(self.nodes):
                yield Run(self.nodes[code])


def body_work(problem: Problem, *, paging: bool = False) -> BodyWork:
    """Look at the body of a training graph the way searches do; costs are picojoules, or time where those are free."""
    nodes = problem.section(Section.BODY)
    tensors = tuple(tensor for node in nodes for tensor in problem.makes[node])
    number = {tensor: index for index, tensor in enumerate(tensors)}

    def known(row: Iterable[int]) -> tuple[int, ...]:
        return tuple(number[tensor] for tensor in row if tensor in number)

    times = tuple(problem.nanoseconds(problem.flops[node]) for node in nodes)
    energies = tuple(problem.picojoules(problem.flops[node]) for node in nodes)
    work = Workload(
        sizes=tuple(problem.rounded(tensor) for tensor in tensors),
        pages=tuple(_pages(problem, tensor) if paging else None for tensor in tensors),
        reads=(*(known(problem.reads[node]) for node in nodes), known(sorted(problem.outputs))),
        makes=(*(known(problem.makes[node]) for node in nodes), ()),
        costs=(*(energies if any(energies) else times), 0),
        times=(*times, 0),
        scratch=(*(round_up(problem.scratch_bytes[node]) for node in nodes), 0),
        fences=(*_fences(problem, nodes), len(nodes)),
    )
    begun = [tensor for node in problem.section(Section.BEGIN) for tensor in problem.makes[node]]
    return BodyWork(work, nodes, tensors, problem.residents.bytes + sum(map(problem.rounded, begun)))


def _fences(problem: Problem, nodes: Row[int]) -> Iterator[int]:
    changers: dict[int, list[int]] = {}
    for index, node in enumerate(nodes):
        for tensor in problem.updates[node]:
            changers.setdefault(tensor, []).append(index)
    for index, node in enumerate(nodes):
        spoken_of = (*problem.touches[node], *problem.makes[node])
        later = [changer for tensor in spoken_of for changer in changers.get(tensor, ()) if changer > index]
        yield index if problem.updates[node] else min(later, default=len(nodes) + 1)


def _pages(problem: Problem, tensor: int) -> Pages | None:
    costs = problem.costs
    if costs.page_out_bytes_per_second is None or costs.page_in_bytes_per_second is None:
        return None
    size = problem.bytes[tensor]
    return size * costs.picojoules_per_byte_out, size * costs.picojoules_per_byte_in
