"""Sparse update: the biases of the last layers, chosen weights or a share of their input channels, and the classifier.

A weight of which only some channels train stays frozen as a whole; beside it lies a trained part that is added to its
first channels, and starts at zero. So the backward keeps these channels of the activation and no others, which is what
the budget of such a scheme counts. Of a grouped convolution whole groups train.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from hedgerow_plans.graph.ir import Graph, Init, Node, Tensor
from hedgerow_plans.methods import anatomy
from hedgerow_plans.methods.adapted import (
    Adapted,
    Insertion,
    MethodError,
    base_of,
    new_parameter,
    put_in,
    refuse,
    train_only,
)
from hedgerow_plans.methods.selection import head

WHOLE = 8
"""Eighths of a whole weight."""


@dataclass(frozen=True, slots=True)
class LayerShare:
    """A layer whose weight trains, and how many eighths of its input channels."""

    layer: str
    eighths: int = WHOLE


@dataclass(frozen=True, slots=True)
class Sparse:
    """Train the biases of the last layers before the classifier, shares of chosen weights, and the classifier."""

    last_biases: int = 0
    layers: tuple[LayerShare, ...] = ()

    @property
    def name(self) -> str:
        """Return the method's name in a TrainingJob."""
        return "sparse"

    def apply(self, graph: Graph) -> Adapted:
        """Make biases and whole weights trainable, and put a trained part beside the others."""
        self._check()
        trained = {*head(self.name, graph), *self._biases(graph)}
        insertions: dict[str, Insertion] = {}
        for share in self.layers:
            node = self._find(graph, share.layer)
            part = None if share.eighths == WHOLE else _part(graph, node, share.eighths)
            if part is None:
                trained.update(anatomy.parameters_of(graph, node, (1,)))
            else:
                insertions[node.outputs[0]] = part
                trained.update(tensor.name for tensor in part.parameters)
        return train_only(put_in(graph, self.name, insertions), trained)

    def _check(self) -> None:
        if self.last_biases < 0:
            raise MethodError(f"Method sparse trains {self.last_biases} biases; give it a number of at least 0.")
        names = [share.layer for share in self.layers]
        for share in self.layers:
            if not 1 <= share.eighths <= WHOLE:
                problem = f"{share.eighths} eighths of {share.layer!r}; give it 1 to {WHOLE}"
                raise MethodError(f"Method sparse trains {problem}.")
            if names.count(share.layer) > 1:
                raise MethodError(f"Method sparse names the layer {share.layer!r} twice; name it once.")

    def _biases(self, graph: Graph) -> Iterator[str]:
        """Return the biases of the last layers before the classifier."""
        found = [bias for node in anatomy.layers(graph)[:-1] if (bias := anatomy.bias_of(graph, node)) is not None]
        if self.last_biases > len(found):
            problem = f"it has {len(found)} biases before its last layer and {self.last_biases} are to be trained"
            raise refuse(self.name, graph, f"{problem}; lower the number")
        yield from found[len(found) - self.last_biases :]

    def _find(self, graph: Graph, layer: str) -> Node:
        nodes = anatomy.layers(graph)
        for node in nodes:
            if node.name == layer:
                return node
        known = anatomy.shown(node.name for node in nodes)
        raise refuse(self.name, graph, f"it has no linear or conv2d layer {layer!r}; its layers are {known}")


def _part(graph: Graph, layer: Node, eighths: int) -> Insertion | None:
    """Return the trained part of a layer's weight and the nodes that add what it makes; None if it would be all."""
    tensors = graph.by_name()
    x, weight, y = tensors[layer.inputs[0]], tensors[layer.inputs[1]], tensors[layer.outputs[0]]
    groups = anatomy.groups_of(layer)
    units = weight.shape[1] if groups == 1 else groups
    kept = max(1, units * eighths // WHOLE)
    if kept == units:
        return None
    outputs, channels, kept_groups = weight.shape[0], kept, 1
    if groups > 1:
        outputs, channels, kept_groups = weight.shape[0] // groups * kept, weight.shape[1] * kept, kept
    part = new_parameter(f"{weight.name}.part", (outputs, channels // kept_groups, *weight.shape[2:]), Init("zeros"))
    return Insertion((part,), tuple(_beside(layer, (x, part, y), channels, kept_groups)))


def _beside(layer: Node, tensors: tuple[Tensor, Tensor, Tensor], channels: int, groups: int) -> Iterator[Node]:
    """Return the nodes that take some channels, apply the part to them, and add the result to the layer's."""
    x, part, y = tensors
    image = layer.op == "conv2d"
    taken, made = f"{y.name}.channels", f"{y.name}.part"
    shape = (channels, *x.shape[1:]) if image else (*x.shape[:-1], channels)
    start = tuple(0 for _ in shape)
    attributes = {**layer.attributes, "groups": groups} if image else dict(layer.attributes)
    yield Node(taken, "slice", (x.name,), (taken,), attributes={"start": start, "shape": shape})
    yield Node(made, layer.op, (taken, part.name), (made,), attributes=attributes)
    missing = y.shape[0] - part.shape[0] if image else 0
    if missing:
        padded, after = f"{y.name}.padded", (missing, 0, 0)
        yield Node(padded, "pad", (made,), (padded,), attributes={"before": (0, 0, 0), "after": after})
        made = padded
    yield Node(f"{y.name}.part_sum", "add", (base_of(y.name), made), (y.name,))
