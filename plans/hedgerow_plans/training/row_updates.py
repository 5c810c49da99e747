"""Updating only the rows of a table that tokens chose, where the optimiser leaves the others as they are.

Plain SGD does: a row without a token has no gradient, and nothing decays or keeps moving. Then the table's gradient,
as large as the table itself, is never made.
"""

from collections import Counter
from dataclasses import replace

from hedgerow_plans.graph.ir import Graph, Node


def with_row_updates(graph: Graph) -> Graph:
    """Return the graph with each plain update of a table, and the gradient that only it reads, made one node."""
    uses = Counter(name for node in graph.nodes for name in node.reads)
    gradients = {node.outputs[0]: node for node in graph.nodes if node.op == "embedding_grad"}
    single = {name: node for name, node in gradients.items() if uses[name] == 1 and name not in graph.outputs}
    folded = {node.name: single[node.inputs[0]] for node in graph.nodes if _is_plain(node) and node.inputs[0] in single}
    gone = {gradient.outputs[0] for gradient in folded.values()}
    nodes = tuple(
        replace(node, op="sgd_rows", inputs=folded[node.name].inputs, attributes={}) if node.name in folded else node
        for node in graph.nodes
        if gone.isdisjoint(node.outputs)
    )
    return replace(graph, tensors=tuple(tensor for tensor in graph.tensors if tensor.name not in gone), nodes=nodes)


def _is_plain(node: Node) -> bool:
    """Whether an update only subtracts the gradient: no decay, no momentum, no clipping."""
    changed = any(node.attributes.get(name) for name in ("weight_decay", "clip"))
    return node.op == "sgd" and len(node.inputs) == len(node.updates) == 1 and not changed
