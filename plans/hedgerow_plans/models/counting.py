"""How large a network is: its parameters and the multiply-accumulates of one sample.

Parameters are what training can change; the running statistics of a batch norm are not among them (Keras counts them,
torchvision does not). Multiply-accumulates are those of convolutions, fully connected layers, matrix products and
attention, without biases, norms, activations and pooling: the count of MLPerf Tiny and of TTE, and what torchvision
publishes as "GFLOPS".
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hedgerow_plans.graph import running_statistics
from hedgerow_plans.graph.ir import Graph, Node, Tensor

HEAD = "logits"
"""The layer that a task replaces; models whose publication leaves it out are counted without it."""

Tensors = Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class Size:
    """Parameters and multiply-accumulates of one sample."""

    parameters: int
    macs: int

    def __sub__(self, other: "Size") -> "Size":
        return Size(self.parameters - other.parameters, self.macs - other.macs)


def size(graph: Graph) -> Size:
    """Return the size of a forward graph."""
    return Size(count_parameters(graph), count_macs(graph))


def head_size(graph: Graph) -> Size:
    """Return the size of the last layer alone; nothing if it has no parameters of its own."""
    tensors = graph.by_name()
    heads = [node for node in graph.nodes if node.name == HEAD]
    names = {name for node in heads for name in node.inputs if tensors[name].resident}
    return Size(sum(tensors[name].elements for name in names), sum(_macs(node, tensors) for node in heads))


def count_parameters(graph: Graph) -> int:
    """Return how many numbers training can change."""
    statistics = running_statistics.names(graph)
    return sum(tensor.elements for tensor in graph.resident() if tensor.name not in statistics)


def count_macs(graph: Graph) -> int:
    """Return the multiply-accumulates of one sample."""
    tensors = graph.by_name()
    return sum(_macs(node, tensors) for node in graph.nodes)


def _macs(node: Node, tensors: Tensors) -> int:
    rule = _RULES.get(node.op)
    return rule(node, tensors) if rule else 0


def _layer(node: Node, tensors: Tensors) -> int:
    """Return one product for each output and each weight that it is made from."""
    return tensors[node.outputs[0]].elements * math.prod(tensors[node.inputs[1]].shape[1:])


def _matmul(node: Node, tensors: Tensors) -> int:
    rows, columns = tensors[node.inputs[0]].shape[-2:]
    return tensors[node.outputs[0]].elements * (rows if node.attributes.get("transpose_first") else columns)


def _attention(node: Node, tensors: Tensors) -> int:
    """Return the products of queries with keys, and of their weights with values; heads share the width."""
    (queries, width), (keys, _), (_, value_width) = (tensors[name].shape for name in node.inputs)
    return queries * keys * (width + value_width)


_RULES: Mapping[str, Callable[[Node, Tensors], int]] = {
    "conv2d": _layer,
    "linear": _layer,
    "matmul": _matmul,
    "multi_head_attention": _attention,
}
