"""What a method returns, and the two things methods do: say which parameters are trained, and put in new nodes.

New nodes go behind a tensor: its maker writes `<name>.base` instead, and what is put in makes the old name again, so
that everything that read the tensor reads the changed one. Parameters of the model keep their names, so that one file
of base weights serves every method.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from hedgerow_plans.graph import running_statistics, table
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Graph, Init, Node, Role, Tensor


class MethodError(GraphError):
    """A method that cannot be applied to a model."""


@dataclass(frozen=True, slots=True)
class Adapted:
    """A forward graph whose parameters have their final roles, and the names of those that are trained."""

    graph: Graph
    delta: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Insertion:
    """What is put in behind one tensor: new parameters, and nodes of which the last makes the tensor's old name."""

    parameters: tuple[Tensor, ...]
    nodes: tuple[Node, ...]


def refuse(method: str, graph: Graph, problem: str) -> MethodError:
    """Return the error that says why a method cannot train a model, and what to do."""
    return MethodError(f"Method {method} cannot train {graph.name!r}: {problem}.")


def new_parameter(name: str, shape: tuple[int, ...], init: Init) -> Tensor:
    """Return a parameter that a method adds; `train_only` decides about its role."""
    return Tensor(name, shape, batched=False, role=Role.FROZEN, init=init)


def base_of(name: str) -> str:
    """Return how a tensor is called before anything was put in behind it."""
    return f"{name}.base"


def put_in(graph: Graph, method: str, insertions: Mapping[str, Insertion]) -> Graph:
    """Return the graph with nodes put in behind some of its tensors."""
    parameters = [parameter for insertion in insertions.values() for parameter in insertion.parameters]
    nodes: list[Node] = []
    for node in graph.nodes:
        behind = [name for name in node.outputs if name in insertions]
        outputs = tuple(base_of(name) if name in insertions else name for name in node.outputs)
        nodes.append(replace(node, outputs=outputs) if behind else node)
        for name in behind:
            nodes += insertions[name].nodes
    return rewritten(graph, method, parameters, nodes)


def rewritten(graph: Graph, method: str, parameters: Iterable[Tensor], nodes: Collection[Node]) -> Graph:
    """Return the graph with more parameters and other nodes, every other tensor inferred again."""
    known = {tensor.name: tensor for tensor in (*graph.resident(), *parameters)}
    for node in nodes:
        for tensor in table.infer(node, known):
            if tensor.name in known:
                raise refuse(method, graph, f"it already has a tensor called {tensor.name!r}; rename it")
            known[tensor.name] = tensor
    return replace(graph, tensors=tuple(known.values()), nodes=tuple(nodes))


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
