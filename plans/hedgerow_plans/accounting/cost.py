"""What a step of a graph costs in operations, and on a class of devices in time and energy.

Operations are the operator table's: additions and multiplications count one each. Multiply-accumulates are what papers
about inference count: one for each product that a convolution, a matrix product or an attention adds up.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import Graph, Node, Role, Section
from hedgerow_plans.graph.operator import Tensors
from hedgerow_plans.planning.problem import DeviceCosts


@dataclass(frozen=True, slots=True)
class StepCost:
    """One optimiser step on a class of devices, nothing recomputed or paged."""

    flops: int
    nanoseconds: int
    picojoules: int


def parameters(graph: Graph) -> int:
    """Return the elements of everything a forward graph learns or has learnt."""
    return sum(tensor.elements for tensor in graph.resident() if tensor.role in (Role.FROZEN, Role.TRAINABLE))


def macs(graph: Graph) -> int:
    """Return the multiply-accumulates of a forward graph for one sample."""
    tensors = graph.by_name()
    return sum(_MACS[node.op](node, tensors) for node in graph.nodes if node.op in _MACS)


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


def _layer_macs(node: Node, tensors: Tensors) -> int:
    """Return one product per output element and weight that goes into it."""
    return tensors[node.outputs[0]].elements * prod(tensors[node.inputs[1]].shape[1:])


_MACS: Mapping[str, Callable[[Node, Tensors], int]] = {"conv2d": _layer_macs, "linear": _layer_macs}
