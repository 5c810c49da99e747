"""Recomputation by segments (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost").

The forward nodes are cut into k segments of equal count. What crosses a cut is kept; what the backward pass reads from
inside a segment is dropped and made again, a segment at a time, right before its first backward reader. The last
segment is never dropped, its backward comes at once. k runs around sqrt(n); the cheapest k that fits is taken.

Residual connections need nothing special: a tensor that reaches over a cut is kept by its forward readers, and by the
recomputations that read it. A node is never run again after a tensor it reads was changed in place: it is kept.
"""

import math
from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Row
from itertools import pairwise

from hedgerow_plans.graph.ir import Section
from hedgerow_plans.plan import Infeasible, Plan
from hedgerow_plans.planning.lowering import sequence_flops
from hedgerow_plans.planning.problem import Problem
from hedgerow_plans.planning.sequence import Run, Sequence, straight
from hedgerow_plans.planning.strategies.limits import KeepGoing, Limits, first_that_fits, forever

NAME = "sqrt-n"


def plan(problem: Problem, limits: Limits) -> Plan | Infeasible:
    """Plan with the cheapest segmentation that fits."""
    return first_that_fits(problem, sequences(problem, limits.keep_going), NAME, limits)


def sequences(problem: Problem, _keep_going: KeepGoing = forever) -> list[Sequence]:
    """Return all segmentations, cheapest first."""
    distinct = list(dict.fromkeys(_segmentations(problem))) or [straight(problem)]
    return sorted(distinct, key=lambda sequence: sequence_flops(problem, sequence))


def _segmentations(problem: Problem) -> Iterator[Sequence]:
    forward = forward_nodes(problem)
    most = min(len(forward), 2 * math.isqrt(len(forward)) + 1)
    for segment_count in range(2, most + 1):
        yield segmented(problem, forward, segment_count)


def forward_nodes(problem: Problem) -> tuple[int, ...]:
    """Return the body's nodes that the graph's outputs depend on: the forward pass and the loss."""
    wanted = set(problem.outputs)
    forward = []
    for node in reversed(problem.section(Section.BODY)):
        if wanted.intersection(problem.makes[node]) and not problem.updates[node]:
            forward.append(node)
            wanted.update(problem.reads[node])
    return tuple(reversed(forward))


def segmented(problem: Problem, forward: Row[int], segment_count: int) -> Sequence:
    """Return the sequence that makes each segment's inner tensors again before the backward pass reads them."""
    segments = _cut(forward, segment_count)
    segment_of = {node: index for index, segment in enumerate(segments) for node in segment}
    kept = set(_crossing(problem, segment_of)) | set(segments[-1])
    while True:
        body = _with_recomputation(problem, segment_of, kept)
        stale = _stale(problem, body)
        if not stale:
            plain = straight(problem)
            return Sequence(plain.begin, tuple(map(Run, body)), plain.finish)
        kept |= stale


def _cut(forward: Row[int], segment_count: int) -> list[Row[int]]:
    edges = [len(forward) * index // segment_count for index in range(segment_count + 1)]
    return [forward[start:end] for start, end in pairwise(edges)]


def _crossing(problem: Problem, segment_of: dict[int, int]) -> Iterator[int]:
    """Yield the nodes with an output that a later segment reads; all their outputs are kept."""
    maker = {tensor: node for node in segment_of for tensor in problem.makes[node]}
    for reader, segment in segment_of.items():
        for tensor in problem.reads[reader]:
            if tensor in maker and segment_of[maker[tensor]] != segment:
                yield maker[tensor]


def _with_recomputation(problem: Problem, segment_of: dict[int, int], kept: set[int]) -> list[int]:
    """Return the body's nodes with each segment's recomputation before its first reader in the backward pass."""
    body = problem.section(Section.BODY)
    maker = {tensor: node for node in segment_of if node not in kept for tensor in problem.makes[node]}
    wanted = _wanted(problem, (node for node in body if node not in segment_of), maker)
    done: set[int] = set()
    order: list[int] = []
    for node in body:
        if node not in segment_of:
            needed = {segment_of[maker[tensor]] for tensor in problem.reads[node] if tensor in maker}
            for segment in sorted(needed - done):
                order += [inner for inner in segment_of if inner in wanted and segment_of[inner] == segment]
                done.add(segment)
        order.append(node)
    return order


def _wanted(problem: Problem, backward: Iterable[int], maker: dict[int, int]) -> set[int]:
    """Return the dropped nodes that must run again: those the backward pass reads, and their dropped ancestors."""
    wanted: set[int] = set()
    queue = [maker[tensor] for node in backward for tensor in problem.reads[node] if tensor in maker]
    while queue:
        node = queue.pop()
        if node not in wanted:
            wanted.add(node)
            queue += [maker[tensor] for tensor in problem.reads[node] if tensor in maker]
    return wanted


def _stale(problem: Problem, body: Row[int]) -> set[int]:
    """Return the nodes that are run again although a tensor they read or make was changed in place before."""
    changed: set[int] = set()
    seen: set[int] = set()
    stale = set()
    for node in body:
        if node in seen and changed.intersection(problem.touches[node] + problem.makes[node]):
            stale.add(node)
        seen.add(node)
        changed.update(problem.updates[node])
    return stale
