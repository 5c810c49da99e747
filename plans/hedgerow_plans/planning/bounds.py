"""What no plan can go below, and who is to blame: proven figures beside every promise and every refusal.

Every offset is aligned, so tensors that are live together need their rounded bytes, except that the topmost one ends
at its exact last byte; a bound therefore forgives the largest rounding among them.
"""

from collections.abc import Iterable, Iterator

from hedgerow_plans.graph.ir import Section, round_up
from hedgerow_plans.plan import Bounds, Infeasible
from hedgerow_plans.planning.problem import Problem
from hedgerow_plans.planning.sequence import Instance, Run, Sequence


def bounds(problem: Problem, sequence: Sequence, instances: list[Instance]) -> Bounds:
    """Return the lower bounds of a sequence and of its graph."""
    return Bounds(
        working_set_bytes=working_set_bytes(problem),
        max_live_bytes=max_live_bytes(problem, sequence, instances),
        no_overhead_picojoules=problem.picojoules(_every_node_once(problem)),
    )


def working_set_bytes(problem: Problem) -> int:
    """Return the bytes of the largest single node: whatever the order, it runs with its inputs and outputs live."""
    return max((_stack(problem, _node_bytes(problem, node)) for node in range(len(problem.graph.nodes))), default=0)


def max_live_bytes(problem: Problem, sequence: Sequence, instances: list[Instance]) -> int:
    """Return the bytes of the fullest operation of a sequence: no layout of it ends lower."""
    return max((_stack(problem, sizes.values()) for sizes in _live(problem, sequence, instances)), default=0)


def refusal(
    problem: Problem, sequence: Sequence, instances: list[Instance], needed_bytes: int, budget_bytes: int
) -> Infeasible:
    """Say that the best plan found needs more than there is, with the largest tensor at its fullest operation."""
    fullest = max(_live(problem, sequence, instances), key=lambda sizes: sum(map(round_up, sizes.values())), default={})
    inside = {place.tensor for place in problem.residents.placements}
    everything = fullest | {t.name: t.bytes(1) for t in problem.graph.resident() if t.name in inside}
    tensor = max(everything, key=lambda name: everything[name], default="")
    floor_bytes = working_set_bytes(problem)
    reason = (
        f"Graph {problem.graph.name} needs {needed_bytes} bytes at micro-batch {problem.micro_batch}, but the budget is "
        f"{budget_bytes}; the largest tensor at the fullest step is {tensor} with {everything.get(tensor, 0)} bytes. "
        f"Raise the budget, or train fewer tensors; nothing runs below {floor_bytes} bytes."
    )
    return Infeasible(needed_bytes, budget_bytes, floor_bytes, tensor, reason)


def _every_node_once(problem: Problem) -> int:
    repeats = {Section.BEGIN: 1, Section.BODY: problem.micro_batches, Section.FINISH: 1}
    return sum(
        flops * repeats[node.section] for flops, node in zip(problem.flops, problem.graph.nodes, strict=True)
    )


def _node_bytes(problem: Problem, node: int) -> list[int]:
    tensors = dict.fromkeys(problem.reads[node] + problem.makes[node])
    return [problem.bytes[tensor] for tensor in tensors] + [problem.scratch_bytes[node]]


def _live(problem: Problem, sequence: Sequence, instances: list[Instance]) -> Iterator[dict[str, int]]:
    """Yield the exact bytes of what is live at each operation, by name."""
    births: dict[int, list[Instance]] = {}
    for item in instances:
        births.setdefault(item.birth, []).append(item)
    live: list[Instance] = []
    for position, operation in enumerate(sequence.operations()):
        live = [item for item in live if item.last >= position] + births.get(position, [])
        sizes = {problem.graph.tensors[item.tensor].name: problem.bytes[item.tensor] for item in live}
        if isinstance(operation, Run):
            sizes[f"the scratch of {problem.graph.nodes[operation.node].name}"] = problem.scratch_bytes[operation.node]
        yield sizes


def _stack(problem: Problem, sizes: Iterable[int]) -> int:
    """Return where a stack of aligned tensors on top of the residents ends at least."""
    exact = [size for size in sizes if size]
    if not exact:
        return problem.residents.exact_bytes
    slack = max(round_up(size) - size for size in exact)
    return problem.residents.bytes + sum(map(round_up, exact)) - slack
