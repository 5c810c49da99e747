"""What the layers of a network cost in a sparse update, counted by TTE's own rule (`accounting.tte`)."""

from collections.abc import Mapping, Sequence

from hedgerow_plans.accounting.tte import PartialBackward, SparseUpdate, partial_backward
from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.planning.sparse_update import Layer, Share

RATIOS = (1 / 8, 1 / 4, 1 / 2, 1.0)
"""The shares of a weight's input channels that TTE chooses from."""


def tte_layers(
    graph: Graph, bias_contributions: Sequence[float], weight_contributions: Sequence[Mapping[float, float]]
) -> tuple[int, list[Layer]]:
    """Return the bits that every scheme costs, and the convolutions with their costs and the contributions given."""
    fixed = _bits(partial_backward(graph, SparseUpdate(0)))
    count = len(bias_contributions)
    prefixes = [_bits(partial_backward(graph, SparseUpdate(biases))) for biases in range(count + 1)]
    layers = []
    for position, gains in enumerate(weight_contributions):
        biases = count - position
        shares = tuple(
            Share(ratio, _bits(partial_backward(graph, SparseUpdate(0, {position: ratio}))) - fixed, gain)
            for ratio, gain in gains.items()
        )
        layers.append(Layer(prefixes[biases] - prefixes[biases - 1], bias_contributions[position], shares))
    return fixed, layers


def _bits(counted: PartialBackward) -> int:
    return counted.weight_bits + counted.activation_bits
