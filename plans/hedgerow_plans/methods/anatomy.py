"""What methods know about a graph they have never seen: its layers, its norms, and which parameters are biases.

Only nodes that lead to the graph's output count: a parameter beside them could not be trained.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from hedgerow_plans.graph.ir import Graph, Node, Tensor
from hedgerow_plans.methods.adapted import refuse

LAYERS = ("linear", "conv2d")
"""Operators with a weight and, perhaps, a bias: inputs 1 and 2."""

NORMS = ("batch_norm", "layer_norm", "group_norm", "rms_norm")
"""Operators with a scale and, perhaps, a shift: inputs 1 and 2."""

ACTIVATIONS = ("relu", "relu6", "hswish", "sigmoid", "tanh", "gelu", "silu")

_MOST_NAMES_SHOWN = 8


def live_nodes(graph: Graph) -> tuple[Node, ...]:
    """Return the nodes that lead to an output, in order."""
    needed, kept = set(graph.outputs), []
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outputs):
            kept.append(node)
            needed.update(node.inputs)
    return tuple(reversed(kept))


def layers(graph: Graph) -> tuple[Node, ...]:
    """Return the linear and conv2d layers in order."""
    return tuple(node for node in live_nodes(graph) if node.op in LAYERS)


def last_layer(method: str, graph: Graph) -> Node:
    """Return the layer nearest to the output, or raise a sentence."""
    found = layers(graph)
    if not found:
        raise refuse(method, graph, "it has no linear or conv2d layer; choose another model")
    return found[-1]


def chosen_layers(method: str, graph: Graph, targets: tuple[str, ...]) -> tuple[Node, ...]:
    """Return the layers whose names match one of the patterns, all of them if there is none."""
    found = layers(graph)
    for target in targets:
        if not any(fnmatchcase(node.name, target) for node in found):
            known = shown(node.name for node in found)
            raise refuse(method, graph, f"no linear or conv2d layer is called {target!r}; its layers are {known}")
    return tuple(node for node in found if not targets or any(fnmatchcase(node.name, target) for target in targets))


def shown(names: Iterable[str]) -> str:
    """Return a few names for a sentence."""
    listed = list(names)
    more = f" and {len(listed) - _MOST_NAMES_SHOWN} more" if len(listed) > _MOST_NAMES_SHOWN else ""
    return ", ".join(listed[:_MOST_NAMES_SHOWN]) + more if listed else "none"


def parameters_of(graph: Graph, node: Node, positions: Iterable[int]) -> tuple[str, ...]:
    """Return the parameters behind some inputs of a node; a weight may be standardised on its way."""
    tensors, makers = graph.by_name(), {name: maker for maker in graph.nodes for name in maker.outputs}
    found = []
    for position in positions:
        name = node.inputs[position] if position < len(node.inputs) else ""
        while name in makers and not tensors[name].batched and makers[name].inputs:
            name = makers[name].inputs[0]
        if name in tensors and tensors[name].resident:
            found.append(name)
    return tuple(found)


def own_parameters(graph: Graph, node: Node) -> tuple[str, ...]:
    """Return the weight and bias of a layer, or the scale and shift of a norm."""
    return parameters_of(graph, node, (1, 2))


def biases(graph: Graph) -> tuple[str, ...]:
    """Return the biases of all layers and the shifts of all norms, in order."""
    nodes = (node for node in live_nodes(graph) if node.op in LAYERS + NORMS)
    return tuple(dict.fromkeys(name for node in nodes for name in node.inputs[2:3]))


def bias_of(graph: Graph, layer: Node) -> str | None:
    """Return a layer's bias, or the shift of the norm that alone reads its output, or nothing."""
    if len(layer.inputs) > 2:
        return layer.inputs[2]
    reader = sole_reader(graph, layer.outputs[0])
    return reader.inputs[2] if reader is not None and reader.op in NORMS and len(reader.inputs) > 2 else None


def sole_reader(graph: Graph, tensor: str) -> Node | None:
    """Return the node that reads a tensor, if it is one and the tensor is no output."""
    readers = [node for node in live_nodes(graph) if tensor in node.inputs]
    return readers[0] if len(readers) == 1 and tensor not in graph.outputs else None


def groups_of(node: Node) -> int:
    """Return in how many groups a layer treats its channels."""
    groups = node.attributes.get("groups", 1)
    return groups if isinstance(groups, int) else 1


def is_image(tensor: Tensor) -> bool:
    """Tell whether a tensor has channels, rows and columns."""
    return tensor.batched and len(tensor.shape) == 3
