"""What a sparse update costs, as the authors of TTE count (arXiv 2206.15472, equation 5): extra bits at batch 1.

The network runs in int8. Its classifier keeps its input. Each of the last convolutions whose bias is trained keeps one
bit per output element, for the clipping, and a 32-bit bias. A convolution whose weight is trained for some of its
input channels keeps those channels of its input and of its weight. Everything else costs nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Graph, Node
from hedgerow_plans.graph.operator import Tensors

_VALUE_BITS = 8
_BIAS_BITS = 32
_MASK_BITS = 1


@dataclass(frozen=True, slots=True)
class SparseUpdate:
    """Biases of the last convolutions, and weights of some, by position among all convolutions in order."""

    biases: int
    weights: Mapping[int, float] = field(default_factory=dict)  # position to the ratio of input channels


@dataclass(frozen=True, slots=True)
class PartialBackward:
    """Bits on top of inference."""

    weight_bits: int  # of trained biases and weights
    activation_bits: int  # of masks and kept inputs

    @property
    def total_kib(self) -> float:
        """Return the sum in units of 1024 bytes, which the authors call kB."""
        return (self.weight_bits + self.activation_bits) / 8 / 1024


def partial_backward(graph: Graph, update: SparseUpdate) -> PartialBackward:
    """Count a sparse update of a forward graph that has convolutions and ends in a classifier."""
    convolutions = _convolutions(graph)
    _check(graph, update, len(convolutions))
    tensors = graph.by_name()
    weight_bits, activation_bits = 0, _VALUE_BITS * tensors[_classifier(graph).inputs[0]].elements
    for position, node in enumerate(convolutions):
        if position >= len(convolutions) - update.biases:
            weight_bits += _BIAS_BITS * tensors[node.outputs[0]].shape[0]
            activation_bits += _MASK_BITS * tensors[node.outputs[0]].elements
        kept_weight, kept_input = _kept_bits(node, tensors, update.weights.get(position, 0))
        weight_bits, activation_bits = weight_bits + kept_weight, activation_bits + kept_input
    return PartialBackward(weight_bits, activation_bits)


def last_layers(graph: Graph, count: int) -> SparseUpdate:
    """Return the update of all biases and weights of the last convolutions."""
    total = len(_convolutions(graph))
    return SparseUpdate(count, dict.fromkeys(range(total - count, total), 1.0))


def _convolutions(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op == "conv2d"]


def _classifier(graph: Graph) -> Node:
    layers = [node for node in graph.nodes if node.op == "linear"]
    if not layers:
        raise GraphError(f"Graph {graph.name!r} has no linear layer to count as classifier; give it one.")
    return layers[-1]


def _kept_bits(node: Node, tensors: Tensors, ratio: float) -> tuple[int, int]:
    """Return the bits of the trained part of a weight, and of the input channels it needs."""
    image, weight = tensors[node.inputs[0]].shape, tensors[node.inputs[1]].shape
    channels = int(image[0] * ratio)
    outputs = 1 if node.attributes.get("groups", 1) == image[0] else weight[0]
    return _VALUE_BITS * outputs * channels * prod(weight[2:]), _VALUE_BITS * channels * prod(image[1:])


def _check(graph: Graph, update: SparseUpdate, convolutions: int) -> None:
    subject = f"A sparse update of {graph.name!r}"
    if not 0 <= update.biases <= convolutions:
        raise GraphError(f"{subject} has {update.biases} biases; choose from 0 to {convolutions}.")
    for position, ratio in update.weights.items():
        if not 0 <= position < convolutions:
            raise GraphError(f"{subject} trains convolution {position}; choose from 0 to {convolutions - 1}.")
        if not 0 <= ratio <= 1:
            raise GraphError(f"{subject} trains {ratio} of convolution {position}; choose a ratio from 0 to 1.")
