"""Updates that make the gradient they read themselves, a part at a time, so that it never exists as a whole.

Only plain SGD can: what it subtracts is the gradient times the rate, and nothing decays, is clipped or keeps moving.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import Graph, Node
from hedgerow_plans.graph.operator import Tensors

ROWS: Mapping[str, str] = {"embedding_grad": "sgd_rows"}
"""Of a table, only the rows change that tokens chose: its gradient would be as large as the table, and mostly zeros."""

LAYERS: Mapping[str, str] = {"linear_grad_weight": "sgd_linear"}
"""The gradient of a layer's weight goes straight into it, instead of being written, scaled and read again."""

CONVOLUTIONS: Mapping[str, str] = {"conv2d_grad_weight": "sgd_conv2d"}
"""The same of a convolution, once it is known how its tensors lie."""

Wanted = Callable[[Node, Tensors], bool]
"""Whether an update should make its gradient itself."""


def fold(graph: Graph, folded: Mapping[str, str], wanted: Wanted = table.takes_orders) -> Graph:
    """Return the graph with each plain update, and the gradient of these kinds that only it reads, made one node.

    Two nodes stay where the one is not wanted, at least where it could not work with tensors that lie as they do.
    """
    uses = Counter(name for node in graph.nodes for name in node.reads)
    gradients = {node.outputs[0]: node for node in graph.nodes if node.op in folded}
    single = {name: node for name, node in gradients.items() if uses[name] == 1 and name not in graph.outputs}
    plain = [node for node in graph.nodes if _is_plain(node) and node.inputs[0] in single]
    joined = [(node.inputs[0], _joined(single[node.inputs[0]], node, folded)) for node in plain]
    tensors = graph.by_name()
    made = {node.name: (gradient, node) for gradient, node in joined if wanted(node, tensors)}
    gone = {gradient for gradient, _ in made.values()}
    nodes = tuple(
        made[node.name][1] if node.name in made else node for node in graph.nodes if gone.isdisjoint(node.outputs)
    )
    return replace(graph, tensors=tuple(tensor for tensor in graph.tensors if tensor.name not in gone), nodes=nodes)


def _joined(gradient: Node, update: Node, folded: Mapping[str, str]) -> Node:
    """Return an update that makes its gradient itself, with what the operator asks of the gradient's attributes."""
    op = folded[gradient.op]
    known = table.operator(op).attributes
    kept = {name: value for name, value in gradient.attributes.items() if name in known}
    return replace(update, op=op, inputs=gradient.inputs, attributes=kept)


def _is_plain(node: Node) -> bool:
    """Whether an update only subtracts the gradient: no decay, no momentum, no clipping."""
    changed = any(node.attributes.get(name) for name in ("weight_decay", "clip"))
    return node.op == "sgd" and len(node.inputs) == len(node.updates) == 1 and not changed
