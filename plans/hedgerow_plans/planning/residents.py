"""Where the tensors that survive a step lie: once per program, the same on every rung.

The delta comes first, then the optimiser's state, then frozen parameters, so that what a checkpoint needs is one run of
bytes. Frozen parameters that live outside the arena have no place in it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from hedgerow_plans.graph.ir import Graph, Role, Tensor, round_up
from hedgerow_plans.plan import Placement

_ORDER = (Role.TRAINABLE, Role.STATE, Role.FROZEN)


@dataclass(frozen=True, slots=True)
class Residents:
    """Placements of everything that survives a step, and the bytes below which no transient tensor may lie."""

    placements: tuple[Placement, ...]
    bytes: int  # rounded: the first transient offset
    exact_bytes: int  # the end of the last resident tensor
    mapped: frozenset[str]  # frozen parameters outside the arena


def place_residents(graphs: Iterable[Graph], mapped: Iterable[str] = ()) -> Residents:
    """Place the resident tensors of all graphs of a program one after the other."""
    outside = frozenset(mapped)
    tensors = {tensor.name: tensor for graph in graphs for tensor in graph.resident() if tensor.name not in outside}
    placements = []
    offset = top = 0
    for tensor in _in_order(tensors.values()):
        placements.append(Placement(tensor.name, offset))
        top = offset + tensor.bytes(1)
        offset += round_up(tensor.bytes(1))
    return Residents(tuple(placements), offset, top, outside)


def _in_order(tensors: Iterable[Tensor]) -> list[Tensor]:
    return sorted(tensors, key=lambda tensor: _ORDER.index(tensor.role))
