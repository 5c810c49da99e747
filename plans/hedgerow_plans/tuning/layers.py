"""How weights of fully connected layers lie: by inputs where the only products they are read for are the layer's own.

That product then reads both of its matrices as they lie. The gradient of a layer's input would read such a weight
against its order, so a layer that has one keeps its weight by outputs.
"""

from collections.abc import Collection, Iterable, Iterator

from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import Graph, Node

OPERATORS = ("linear", "linear_grad_input", "linear_grad_weight", "sgd_linear")


def read_forward_alone(graphs: Iterable[Graph], outside: Collection[str]) -> frozenset[str]:
    """Return the weights that layers alone read, and that only change by nodes that take them as they lie."""
    wanted, others = set[str](), set(outside)
    for graph in graphs:
        resident = {tensor.name for tensor in graph.resident()}
        for node in graph.nodes:
            wanted.update(resident.intersection(_weight(node)))
            others.update(name for name in node.inputs if name not in _weight(node))
            others.update(() if _takes_any_order(node) else node.updates)
    return frozenset(wanted - others)


def _weight(node: Node) -> tuple[str, ...]:
    return node.inputs[1:2] if node.op == "linear" else ()


def _takes_any_order(node: Node) -> bool:
    return node.op in OPERATORS or table.operator(node.op).as_stored


def gradients(graph: Graph) -> Iterator[tuple[str, str]]:
    """Yield gradients of layers' weights, with the tensor that each goes into: a weight, or a sum of gradients."""
    made = {node.outputs[0] for node in graph.nodes if node.op == "linear_grad_weight"}
    for node in (node for node in graph.nodes if node.updates):
        yield from ((name, node.updates[0]) for name in made.intersection(node.inputs))
