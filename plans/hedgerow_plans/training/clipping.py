"""Keeping gradients from growing without bound, by what is written into a training graph.

Clipping by value limits every number of a gradient by itself, inside the update that reads it: nothing more is kept.
Clipping by the global norm scales all gradients by one factor, which nobody knows before the last of them is there: all
of them stay until then, as tensors of the graph that every plan counts, and the updates follow at the end. The squares
are summed one gradient after the other, in the same order on every rung.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Node, Section

CLIPPING_PREFIXES = ("squares.", "clip.")
"""What the names of the nodes and tensors made here begin with."""

_FACTOR = "clip.factor"


@dataclass(frozen=True, slots=True)
class ByValue:
    """Every number of a gradient between -limit and limit."""

    limit: float

    def __post_init__(self) -> None:
        _check("value", self.limit)

    @property
    def name(self) -> str:
        """Return the clipping's name in a TrainingJob."""
        return "value"


@dataclass(frozen=True, slots=True)
class ByGlobalNorm:
    """All gradients scaled alike, so that the root of the sum of all their squares is at most the limit."""

    limit: float

    def __post_init__(self) -> None:
        _check("global norm", self.limit)

    @property
    def name(self) -> str:
        """Return the clipping's name in a TrainingJob."""
        return "globalNorm"


Clipping = ByValue | ByGlobalNorm
"""What a TrainingJob may ask for."""


def clipped(update: Node, clipping: Clipping | None) -> Node:
    """Return an optimiser's update that clips the gradient it reads."""
    match clipping:
        case None:
            return update
        case ByValue(limit):
            return replace(update, attributes={**update.attributes, "clip": limit})
        case ByGlobalNorm():
            return replace(update, inputs=(*update.inputs, _FACTOR))


def factor_nodes(gradients: Iterable[tuple[str, str]], clipping: ByGlobalNorm, section: Section) -> tuple[Node, ...]:
    """Return the nodes that make the factor from the gradients, given as (parameter, gradient); the factor is last."""
    nodes: list[Node] = []
    total: tuple[str, ...] = ()
    for parameter, gradient in gradients:
        name = f"squares.{parameter}"
        nodes.append(Node(name, "sum_squares", (gradient, *total), (name,), section=section))
        total = (name,)
    limit = {"limit": clipping.limit}
    return (*nodes, Node(_FACTOR, "clip_factor", total, (_FACTOR,), attributes=limit, section=section))


def _check(kind: str, limit: float) -> None:
    if not (math.isfinite(limit) and limit > 0):
        raise GraphError(f"Gradients are to be clipped by {kind} at {limit}; give it a finite number above 0.")
