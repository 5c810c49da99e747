"""What a method returns, and the one thing every method does: say which parameters are trained."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from hedgerow_plans.graph import running_statistics
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Graph, Role, Tensor


class MethodError(GraphError):
    """A method that cannot be applied to a model."""


@dataclass(frozen=True, slots=True)
class Adapted:
    """A forward graph whose parameters have their final roles, and the names of those that are trained."""

    graph: Graph
    delta: tuple[str, ...]


def train_only(graph: Graph, names: Collection[str]) -> Adapted:
    """Make the named parameters trainable and freeze all others, and with them statistics the model never moves."""
    chosen = set(names) - running_statistics.fixed(graph.nodes)
    tensors = tuple(_with_role(tensor, tensor.name in chosen) for tensor in graph.tensors)
    delta = tuple(tensor.name for tensor in tensors if tensor.role is Role.TRAINABLE)
    return Adapted(replace(graph, tensors=tensors), delta)


def _with_role(tensor: Tensor, trained: bool) -> Tensor:
    if not tensor.resident:
        return tensor
    return replace(tensor, role=Role.TRAINABLE if trained else Role.FROZEN)
