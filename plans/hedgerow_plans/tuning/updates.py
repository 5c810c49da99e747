"""Which convolutions' weights change as their gradients are made, instead of when those have been written."""

from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import Graph, Node
from hedgerow_plans.graph.operator import Tensors
from hedgerow_plans.graph.ops.convolution_ways import Way
from hedgerow_plans.training.folded_updates import CONVOLUTIONS, fold

MOST_TERMS = 512
"""Pixels of all samples over which a gradient is summed.

Kernels take longer sums from the weight in pieces of 250 or more, and round the weight after each: a step far below a
weight's precision would be lost in them. Winograd's way takes the whole sum at once.
"""


def straight_into_weights(graph: Graph, batch_size: int) -> Graph:
    """Return a training graph with the updates of some convolutions made with their gradients, if they are plain SGD.

    Such an update waits for the gradient of the images, which reads the weight, and keeps the images for as long: no
    more memory is held than before where the gradient that is not written is at least as large as they are.
    """

    def wanted(node: Node, tensors: Tensors) -> bool:
        gradient, x, weight = (tensors[name] for name in (*node.inputs, *node.updates))
        terms = batch_size * gradient.elements // gradient.shape[0]
        short = terms <= MOST_TERMS or node.attributes.get("algorithm") == Way.WINOGRAD.value
        return short and weight.elements >= batch_size * x.elements and table.takes_orders(node, tensors)

    return fold(graph, CONVOLUTIONS, wanted)
