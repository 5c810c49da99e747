"""What a step of a graph costs in operations, and on a class of devices in time and energy.

Operations are the operator table's: additions and multiplications count one each. What papers call the size of a
network, its parameters and multiply-accumulates, is counted in `models.counting`.
"""

from dataclasses import dataclass

from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import Graph, Section
from hedgerow_plans.planning.problem import DeviceCosts


@dataclass(frozen=True, slots=True)
class StepCost:
    """One optimiser step on a class of devices, nothing recomputed or paged."""

    flops: int
    nanoseconds: int
    picojoules: int


def flops(graph: Graph, micro_batch: int, micro_batches: int = 1) -> int:
    """Return the operations of a step: the body once per micro-batch, everything else once."""
    tensors = graph.by_name()
    times = {Section.BEGIN: 1, Section.BODY: micro_batches, Section.FINISH: 1}
    return sum(times[node.section] * table.flops(node, tensors, micro_batch) for node in graph.nodes)


def step_cost(graph: Graph, costs: DeviceCosts, micro_batch: int, micro_batches: int = 1) -> StepCost:
    """Return what a step costs on a class of devices."""
    count = flops(graph, micro_batch, micro_batches)
    nanoseconds = -(-count * 1_000_000_000 // costs.flops_per_second)
    return StepCost(count, nanoseconds, count * costs.picojoules_per_flop)
