"""Updates that make the gradient they read themselves, a part at a time, so that it never exists as a whole.

Only plain SGD can: what it subtracts is the gradient times the rate, and nothing decays, is clipped or keeps moving.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from hedgerow_plans.graph.ir import Graph, Node

ROWS: Mapping[str, str] = {"embedding_grad": "sgd_rows"}
"""Of a table, only the rows change that tokens chose: its gradient would be as large as the table, and mostly zeros."""

LAYERS: Mapping[str, str] = {"linear_grad_weight": "sgd_linear"}
"""The gradient of a layer's weight goes straight into it, instead of being written, scaled and read again."""


def fold(graph: Graph, folded: Mapping[str, str]) -> Graph:
    """Return the graph with each plain update, and the gradient of these kinds that only it reads, made one node."""
    uses = Counter(name for node in graph.nodes for name in node.reads)
    gradients = {node.outputs[0]: node for node in graph.nodes if node.op in folded}
    single = {name: node for name, node in gradients.items() if uses[name] == 1 and name not in graph.outputs}
    made = {node.name: single[node.inputs[0]] for node in graph.nodes if _is_plain(node) and node.inputs[0] in single}
    gone = {gradient.outputs[0] for gradient in made.values()}
    nodes = tuple(
        replace(node, op=folded[made[node.name].op], inputs=made[node.name].inputs, attributes={})
        if node.name in made
        else node
        for node in graph.nodes
        if gone.isdisjoint(node.outputs)
    )
    return replace(graph, tensors=tuple(tensor for tensor in graph.tensors if tensor.name not in gone), nodes=nodes)


def _is_plain(node: Node) -> bool:
    """Whether an update only subtracts the gradient: no decay, no momentum, no clipping."""
    changed = any(node.attributes.get(name) for name in ("weight_decay", "clip"))
    return node.op == "sgd" and len(node.inputs) == len(node.updates) == 1 and not changed
