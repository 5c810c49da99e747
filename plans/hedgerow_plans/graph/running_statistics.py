"""Which tensors of a graph are running statistics: resident and maybe trained, but no parameters and without gradients.

A method decides by their role. Trainable ones move with every step, and their norm then works with the statistics of
the batch; with frozen ones it always works with the running ones.
"""

from collections.abc import Iterable

from hedgerow_plans.graph.ir import Graph, Node
from hedgerow_plans.graph.ops.batch_norm import is_batch


def of(node: Node) -> tuple[str, ...]:
    """Return a node's running mean and variance, if it has them; standardising counts its samples as well."""
    if node.op == "standardise":
        return node.inputs[1:]
    return node.inputs[3:] if node.op == "batch_norm" else ()


def names(graph: Graph) -> frozenset[str]:
    """Return the names of all running statistics, which no count of parameters includes."""
    return frozenset(name for node in graph.nodes for name in of(node))


def fixed(nodes: Iterable[Node]) -> frozenset[str]:
    """Return the names of those that the model itself never moves."""
    return frozenset(name for node in nodes if node.op == "batch_norm" and not is_batch(node) for name in of(node))
