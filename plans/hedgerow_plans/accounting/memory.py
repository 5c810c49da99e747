"""How many bytes a graph holds while it runs in its own order: lifetimes, live bytes per node, peak, least working set.

Every tensor is kept from its maker to its last reader (nothing is recomputed or paged), sizes are exact, and no layout
is made: a plan adds the alignment and the gaps of its arena. The order and the lifetimes are the planners', so that an
account and a plan never disagree about who lives when.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from hedgerow_plans.graph.ir import Graph, Role, Section
from hedgerow_plans.planning.problem import DeviceCosts, Measures, Problem, pose
from hedgerow_plans.planning.residents import place_residents
from hedgerow_plans.planning.sequence import straight, trace

_NO_COSTS = DeviceCosts(flops_per_second=1, picojoules_per_flop=0)
_BYTES_ONLY = Measures(flops=lambda _node, _tensors, _micro_batch: 0)


@dataclass(frozen=True, slots=True)
class Lifetime:
    """When a transient tensor holds memory: from the node that makes it through its last reader, both inclusive."""

    tensor: str
    bytes: int
    birth: int
    last: int


@dataclass(frozen=True, slots=True)
class MemoryAccount:
    """Exact bytes of one step at one micro-batch; `live_bytes` has one figure per node, residents and scratch in it."""

    trainable_bytes: int
    frozen_bytes: int
    state_bytes: int  # the optimiser's
    scratch_bytes: int  # of the node that needs most
    saved_bytes: int  # what the forward pass makes and the backward pass reads
    working_set_bytes: int  # residents and the node that needs most: nothing runs below it
    live_bytes: tuple[int, ...]

    @property
    def resident_bytes(self) -> int:
        """Return the bytes of everything that survives a step."""
        return self.trainable_bytes + self.frozen_bytes + self.state_bytes

    @property
    def keep_all_peak_bytes(self) -> int:
        """Return the bytes at the fullest node when nothing is recomputed or paged."""
        return max(self.live_bytes, default=self.resident_bytes)


def lifetimes(graph: Graph, micro_batch: int) -> tuple[Lifetime, ...]:
    """Return the lives of all transient tensors in order of birth; positions count the graph's nodes."""
    return _lives(_pose(graph, micro_batch))


def account(graph: Graph, micro_batch: int) -> MemoryAccount:
    """Return what a valid graph holds when its nodes run in order, each tensor kept until its last use."""
    problem = _pose(graph, micro_batch)
    by_role = Counter(dict.fromkeys(Role, 0))
    for tensor in graph.resident():
        by_role[tensor.role] += tensor.bytes(1)
    lives = _lives(problem)
    trainable, frozen, state = by_role[Role.TRAINABLE], by_role[Role.FROZEN], by_role[Role.STATE]
    return MemoryAccount(
        trainable_bytes=trainable,
        frozen_bytes=frozen,
        state_bytes=state,
        scratch_bytes=max(problem.scratch_bytes, default=0),
        saved_bytes=_saved_bytes(graph, lives),
        working_set_bytes=trainable + frozen + state + _largest_node_bytes(problem),
        live_bytes=_profile(problem, lives, trainable + frozen + state),
    )


def _pose(graph: Graph, micro_batch: int) -> Problem:
    return pose(graph, place_residents([graph]), _NO_COSTS, micro_batch=micro_batch, measures=_BYTES_ONLY)


def _lives(problem: Problem) -> tuple[Lifetime, ...]:
    names = [tensor.name for tensor in problem.graph.tensors]
    return tuple(
        Lifetime(names[item.tensor], problem.bytes[item.tensor], item.birth, item.last)
        for item in trace(problem, straight(problem))
    )


def _profile(problem: Problem, lives: Iterable[Lifetime], resident_bytes: int) -> tuple[int, ...]:
    changes = [0] * (len(problem.graph.nodes) + 1)
    for life in lives:
        changes[life.birth] += life.bytes
        changes[life.last + 1] -= life.bytes
    live = zip(accumulate(changes), problem.scratch_bytes, strict=False)
    return tuple(resident_bytes + transient + scratch for transient, scratch in live)


def _largest_node_bytes(problem: Problem) -> int:
    def needed(node: int) -> int:
        tensors = set(problem.reads[node] + problem.makes[node])
        return problem.scratch_bytes[node] + sum(problem.bytes[tensor] for tensor in tensors)

    return max(map(needed, range(len(problem.graph.nodes))), default=0)


def _saved_bytes(graph: Graph, lives: Iterable[Lifetime]) -> int:
    """Return the bytes made up to the loss and read after it; 0 in a graph that has no loss to go back from."""
    losses = [at for at, node in enumerate(graph.nodes) if not set(node.outputs).isdisjoint(graph.outputs)]
    if not losses or not any(node.updates for node in graph.nodes):
        return 0
    body = {at for at, node in enumerate(graph.nodes) if node.section is Section.BODY}
    crossing = (life for life in lives if life.birth in body and life.birth <= losses[-1] < life.last)
    return sum(life.bytes for life in crossing if life.tensor not in graph.outputs)
