"""Rewrites that let a graph compute less, without changing what it computes.

A rectifier before a maximum over windows comes after it, where there is less to rectify: the order of the two makes no
difference, not even in the last bit. A rectifier whose result is kept for the backward pass needs no mask beside it. A
norm's gradient takes the sums it needs from the gradients of its weight and bias, where those are computed anyway. The
gradient of a layer's weight goes straight into the weight, where plain SGD is all that reads it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import Graph, Node, Tensor
from hedgerow_plans.training import folded_updates
from hedgerow_plans.training.losses import LOSSES

_RECTIFIERS = ("relu", "relu6")


def rewritten(graph: Graph) -> Graph:
    """Return a graph that computes the same with less work."""
    nodes = _with_given_sums(_without_masks(_pooled_first(graph.nodes)))
    return folded_updates.fold(replace(graph, nodes=nodes, tensors=_tensors(graph, nodes)), folded_updates.LAYERS)


def _tensors(graph: Graph, nodes: Iterable[Node]) -> tuple[Tensor, ...]:
    """Return the tensors of rewritten nodes, in the order of the graph's."""
    known = {tensor.name: tensor for tensor in graph.resident()}
    for node in nodes:
        known.update((tensor.name, tensor) for tensor in table.infer(node, known))
    return tuple(known[tensor.name] for tensor in graph.tensors if tensor.name in known)


def _pooled_first(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Let rectifiers whose result only a maximum over windows reads come after it, and their gradients before."""
    makers = {name: node for node in nodes for name in node.outputs}
    readers = Counter(name for node in nodes for name in node.reads)
    swapped: dict[str, Node] = {}
    for pool in (node for node in nodes if node.op == "max_pool2d"):
        rectifier = makers[pool.inputs[0]]
        if rectifier.op in _RECTIFIERS and readers[pool.inputs[0]] == 1:
            swapped.update((node.name, node) for node in _swap(rectifier, pool, nodes))
    return tuple(swapped.get(node.name, node) for node in nodes)


def _swap(rectifier: Node, pool: Node, nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield a rectifier and a pool in each other's place, and their gradients, under the names they had."""
    between, after = rectifier.outputs[0], pool.outputs[0]
    yield replace(pool, name=rectifier.name, inputs=rectifier.inputs, outputs=(between, *pool.outputs[1:]))
    yield replace(rectifier, name=pool.name, inputs=(between,), outputs=(after, *rectifier.outputs[1:]))
    masks, indices = rectifier.outputs[1:], pool.outputs[1:]
    of_pool = next((node for node in nodes if indices and indices[0] in node.inputs), None)
    of_rectifier = next((node for node in nodes if masks and masks[0] in node.inputs), None)
    if of_pool is None or of_rectifier is None:
        return
    yield replace(of_pool, op=of_rectifier.op, inputs=(of_pool.inputs[0], *masks), attributes=of_rectifier.attributes)
    yield replace(of_rectifier, op=of_pool.op, inputs=(of_rectifier.inputs[0], *indices), attributes=of_pool.attributes)


def _without_masks(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Drop the masks of rectifiers whose results the backward pass reads for another reason."""
    loss = next((at for at, node in enumerate(nodes) if LOSSES in node.outputs), len(nodes))
    kept = {name for node in nodes[loss:] for name in node.inputs}
    masks = {
        node.outputs[1]: node
        for node in nodes
        if node.op in _RECTIFIERS and len(node.outputs) > 1 and node.outputs[0] in kept
    }

    def without(node: Node) -> Node:
        if node.op == "relu_grad" and node.inputs[1] in masks:
            rectifier = masks[node.inputs[1]]
            inputs = (node.inputs[0], rectifier.outputs[0])
            return replace(node, op=f"{rectifier.op}_grad_from_result", inputs=inputs)
        dropped = len(node.outputs) > 1 and node.outputs[1] in masks
        return replace(node, outputs=node.outputs[:1]) if dropped else node

    return tuple(without(node) for node in nodes)


def _with_given_sums(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Give the sums over a gradient to the norms that would compute them once more."""
    made: dict[tuple[str, tuple[str, ...]], str] = {}
    result = []
    for node in nodes:
        if node.op in ("batch_norm_grad_weight", "bias_grad"):
            made[node.op, node.inputs] = node.outputs[0]
        elif node.op == "batch_norm_grad_input" and len(node.inputs) == 4:
            sums = (made.get(("batch_norm_grad_weight", node.inputs[:3])), made.get(("bias_grad", node.inputs[:1])))
            if sums[0] is not None and sums[1] is not None:
                node = replace(node, inputs=(*node.inputs, sums[0], sums[1]))  # noqa: PLW2901 - the node as it is kept
        result.append(node)
    return tuple(result)
