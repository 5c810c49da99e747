"""What no plan can go below, and who is to blame: proven figures beside every promise and every refusal.

Every offset is aligned, so tensors that are live together need their rounded bytes, except that the topmost one ends
at its exact last byte; a bound therefore forgives the largest rounding among them.
"""

from collections.abc import Iterable
from itertools import accumulate

from hedgerow_plans.graph.ir import ALIGNMENT_BYTES, Section, round_up
from hedgerow_plans.plan import Bounds, Infeasible
from hedgerow_plans.planning.problem import Problem
from hedgerow_plans.planning.sequence import Instance, Run, Sequence


def bounds(problem: Problem, sequence: Sequence, instances: list[Instance]) -> Bounds:
    """Return the lower bounds of a sequence and of its graph."""
    return Bounds(
        working_set_bytes=working_set_bytes(problem),
        max_live_bytes=max_live_bytes(problem, sequence, instances),
        no_overhead_picojoules=problem.picojoules(every_node_once(problem)),
    )


def working_set_bytes(problem: Problem) -> int:
    """Return the bytes of the largest single node: whatever the order, it runs with its inputs and outputs live."""
    return max((_stack(problem, _node_bytes(problem, node)) for node in range(len(problem.graph.nodes))), default=0)


def max_live_bytes(problem: Problem, sequence: Sequence, instances: list[Instance]) -> int:
    """Return the bytes of the fullest operation of a sequence: no layout of it ends lower."""
    profile = _profile(problem, sequence, instances)
    nearly_full = max(profile, default=0) - ALIGNMENT_BYTES
    fullest = [position for position, rounded in enumerate(profile) if rounded > nearly_full]
    return max(
        (_stack(problem, _live(problem, sequence, instances, position).values()) for position in fullest), default=0
    )


def refusal(
    problem: Problem, sequence: Sequence, instances: list[Instance], needed_bytes: int, budget_bytes: int
) -> Infeasible:
    """Say that the best plan found needs more than there is, with the largest tensor at its fullest operation."""
    profile = _profile(problem, sequence, instances)
    fullest = max(range(len(profile)), key=profile.__getitem__, default=0)
    inside = {place.tensor for place in problem.residents.placements}
    live = {tensor.name: tensor.bytes(1) for tensor in problem.graph.resident() if tensor.name in inside}
    live |= _live(problem, sequence, instances, fullest)
    tensor = max(live, key=lambda name: live[name], default="")
    reason = (
        f"Graph {problem.graph.name} needs {needed_bytes} bytes at micro-batch {problem.micro_batch}, but the budget "
        f"is {budget_bytes}; the largest at the fullest step is {tensor} with {live.get(tensor, 0)} bytes. "
        "Raise the budget, train fewer tensors, or choose a smaller model."
    )
    return Infeasible(needed_bytes, budget_bytes, working_set_bytes(problem), tensor, reason)


def every_node_once(problem: Problem) -> int:
    """Return the operations of a step that computes nothing twice."""
    repeats = {Section.BEGIN: 1, Section.BODY: problem.micro_batches, Section.FINISH: 1}
    return sum(flops * repeats[node.section] for flops, node in zip(problem.flops, problem.graph.nodes, strict=True))


def _node_bytes(problem: Problem, node: int) -> list[int]:
    tensors = dict.fromkeys(problem.reads[node] + problem.makes[node])
    return [problem.bytes[tensor] for tensor in tensors] + [problem.scratch_bytes[node]]


def _profile(problem: Problem, sequence: Sequence, instances: list[Instance]) -> list[int]:
    """Return the rounded bytes in use at each operation."""
    operations = sequence.operations()
    changes = [0] * (len(operations) + 1)
    for item in instances:
        changes[item.birth] += problem.rounded(item.tensor)
        changes[item.last + 1] -= problem.rounded(item.tensor)
    scratch = [round_up(problem.scratch_bytes[op.node]) if isinstance(op, Run) else 0 for op in operations]
    return [live + extra for live, extra in zip(accumulate(changes), scratch, strict=False)]


def _live(problem: Problem, sequence: Sequence, instances: list[Instance], position: int) -> dict[str, int]:
    """Return the exact bytes of what is in use at an operation, by name."""
    live = [item.tensor for item in instances if item.birth <= position <= item.last]
    sizes = {problem.graph.tensors[tensor].name: problem.bytes[tensor] for tensor in live}
    operations = sequence.operations()
    operation = operations[position] if operations else None
    if isinstance(operation, Run):
        sizes[f"the scratch of {problem.graph.nodes[operation.node].name}"] = problem.scratch_bytes[operation.node]
    return sizes


def _stack(problem: Problem, sizes: Iterable[int]) -> int:
    """Return where a stack of aligned tensors on top of the residents ends at least."""
    exact = [size for size in sizes if size]
    if not exact:
        return problem.residents.exact_bytes
    slack = max(round_up(size) - size for size in exact)
    return problem.residents.bytes + sum(map(round_up, exact)) - slack
