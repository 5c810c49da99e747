"""The planning view of a graph: positions instead of names, bytes and integer costs instead of shapes and operators.

Only transient tensors take part: residents have their place already. Costs are integers (nanoseconds, picojoules), so
that two plans compare the same on every machine.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import Graph, Node, Section, Tensor, round_up
from hedgerow_plans.planning.residents import Residents

NodeMeasure = Callable[[Node, Mapping[str, Tensor], int], int]
"""What the operator table says of a node at a micro-batch: operations, or bytes of scratch."""


@dataclass(frozen=True, slots=True)
class DeviceCosts:
    """What a class of devices pays; paging is possible where the storage figures are given."""

    flops_per_second: int
    picojoules_per_flop: int
    page_out_bytes_per_second: int | None = None
    page_in_bytes_per_second: int | None = None
    picojoules_per_byte_out: int = 0
    picojoules_per_byte_in: int = 0


@dataclass(frozen=True, slots=True)
class Measures:
    """The operator table's figures a plan depends on; tests bring their own for operators that do not exist."""

    flops: NodeMeasure = table.flops
    scratch_bytes: NodeMeasure = table.scratch_bytes


@dataclass(frozen=True, slots=True)
class Problem:
    """A graph at one micro-batch; tuples are indexed by the position of the node or tensor in the graph."""

    graph: Graph
    micro_batch: int
    micro_batches: int
    residents: Residents
    costs: DeviceCosts
    bytes: tuple[int, ...]  # by tensor, exact
    reads: tuple[tuple[int, ...], ...]  # by node: transient tensors that must be live
    makes: tuple[tuple[int, ...], ...]  # by node: tensors it writes
    touches: tuple[tuple[int, ...], ...]  # by node: every tensor it reads, residents too
    updates: tuple[tuple[int, ...], ...]  # by node: tensors it changes in place
    outputs: frozenset[int]  # tensors that stay live until the end of the body
    scratch_bytes: tuple[int, ...]  # by node, exact
    flops: tuple[int, ...]  # by node

    def rounded(self, tensor: int) -> int:
        """Return the bytes a tensor takes up in the arena."""
        return round_up(self.bytes[tensor])

    def section(self, section: Section) -> tuple[int, ...]:
        """Return the nodes of a section in the graph's order."""
        return tuple(index for index, node in enumerate(self.graph.nodes) if node.section is section)

    def nanoseconds(self, flops: int) -> int:
        """Return how long a device computes, rounded up."""
        return -(-flops * 1_000_000_000 // self.costs.flops_per_second)

    def picojoules(self, flops: int) -> int:
        """Return what computing costs."""
        return flops * self.costs.picojoules_per_flop


def pose(
    graph: Graph,
    residents: Residents,
    costs: DeviceCosts,
    *,
    micro_batch: int,
    micro_batches: int = 1,
    measures: Measures | None = None,
) -> Problem:
    """Look at a graph the way strategies do."""
    measures = measures or Measures()
    tensors = graph.by_name()
    position = {tensor.name: index for index, tensor in enumerate(graph.tensors)}

    def places(names: tuple[str, ...], *, transient_only: bool = False) -> tuple[int, ...]:
        wanted = (name for name in dict.fromkeys(names) if not (transient_only and tensors[name].resident))
        return tuple(position[name] for name in wanted)

    return Problem(
        graph=graph,
        micro_batch=micro_batch,
        micro_batches=micro_batches,
        residents=residents,
        costs=costs,
        bytes=tuple(tensor.bytes(micro_batch) for tensor in graph.tensors),
        reads=tuple(places(node.reads, transient_only=True) for node in graph.nodes),
        makes=tuple(places(node.outputs) for node in graph.nodes),
        touches=tuple(places(node.reads) for node in graph.nodes),
        updates=tuple(places(node.updates) for node in graph.nodes),
        outputs=frozenset(places(graph.outputs)),
        scratch_bytes=tuple(measures.scratch_bytes(node, tensors, micro_batch) for node in graph.nodes),
        flops=tuple(measures.flops(node, tensors, micro_batch) for node in graph.nodes),
    )
