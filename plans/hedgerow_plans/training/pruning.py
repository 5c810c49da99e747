"""Leaving out what nobody needs: nodes that do not lead to an output, and tensors that no node speaks of."""

from dataclasses import replace

from hedgerow_plans.graph.ir import Graph, Node


def pruned(graph: Graph) -> Graph:
    """Return the part of a forward graph that its outputs depend on, in the same order."""
    needed = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outputs):
            kept.append(node)
            needed.update(node.inputs)
    spoken_of = needed.union(*(node.outputs for node in kept))
    tensors = tuple(tensor for tensor in graph.tensors if tensor.name in spoken_of)
    return replace(graph, tensors=tensors, nodes=tuple(reversed(kept)))
