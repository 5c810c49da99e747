"""A graph as text for people: residents first, then one line per node and section.

The batch axis is written N, because its length belongs to a plan. The text is for reading and for golden tests; it is
not an exchange format.
"""

from collections.abc import Iterator
from itertools import groupby

from hedgerow_plans.graph.ir import Attribute, Graph, Node, Order, Tensor
from hedgerow_plans.graph.operator import Tensors


def render(graph: Graph) -> str:
    """Return the whole graph, with a newline at the end."""
    return "\n".join(_lines(graph)) + "\n"


def _lines(graph: Graph) -> Iterator[str]:
    resident, tensors = graph.resident(), graph.by_name()
    elements = sum(tensor.elements for tensor in resident)
    yield f"graph {graph.name}: {len(graph.nodes)} nodes, {elements} resident elements"
    for role, group in groupby(resident, key=lambda tensor: tensor.role):
        yield f"{role.value}"
        yield from (f"  {_typed(tensor)}" for tensor in group)
    for section, nodes in groupby(graph.nodes, key=lambda node: node.section):
        yield f"{section.value}"
        yield from (f"  {_node(node, tensors)}" for node in nodes)
    yield f"outputs {', '.join(graph.outputs) or 'none'}"


def _node(node: Node, tensors: Tensors) -> str:
    made = ", ".join(_typed(tensors[name]) for name in node.outputs)
    arguments = [*node.inputs, *(f"{name}={_value(value)}" for name, value in sorted(node.attributes.items()))]
    changed = f" updates {', '.join(node.updates)}" if node.updates else ""
    return f"{made}{' = ' if made else ''}{node.op}({', '.join(arguments)}){changed}"


def _typed(tensor: Tensor) -> str:
    axes = ["N"] if tensor.batched else []
    order = "" if tensor.order is Order.SAMPLES else f" by {tensor.order.value}"
    return f"{tensor.name}: {tensor.dtype.value}[{','.join([*axes, *map(str, tensor.shape)])}]{order}"


def _value(value: Attribute) -> str:
    return f"[{','.join(map(str, value))}]" if isinstance(value, tuple) else str(value)
