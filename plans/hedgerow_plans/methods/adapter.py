"""Bottleneck adapters: a narrow trained layer pair behind each branch of the model, and the last layer.

    y' = y + up(relu(down(y)))

They go where Houlsby et al. put them: behind the branch of every residual sum, before it is added. A model without such
sums gets one behind every layer but the last. `up` starts at zero, so that training starts from the base model exactly.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from hedgerow_plans.graph.builder import RELU_GAIN, fan_in_init
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


@dataclass(frozen=True, slots=True)
class Adapter:
    """Train bottlenecks of a width behind the model's branches, and its last layer."""

    width: int

    @property
    def name(self) -> str:
        """Return the method's name in a TrainingJob."""
        return "adapter"

    def apply(self, graph: Graph) -> Adapted:
        """Put a bottleneck behind each branch."""
        if self.width < 1:
            raise MethodError(f"Method adapter has width {self.width}; give it a width of at least 1.")
        last, tensors = head(self.name, graph), graph.by_name()
        places = tuple(_branches(graph)) or tuple(_hidden_layers(self.name, graph))
        if not places:
            raise refuse(self.name, graph, "it has no layer before the last one; choose last")
        insertions = {name: self._bottleneck(tensors[name]) for name in dict.fromkeys(places)}
        added = {tensor.name for insertion in insertions.values() for tensor in insertion.parameters}
        return train_only(put_in(graph, self.name, insertions), {*last, *added})

    def _bottleneck(self, y: Tensor) -> Insertion:
        """Return a pointwise pair of layers: over the channels of an image, over the last axis of anything else."""
        image = anatomy.is_image(y)
        wide, op = (y.shape[0], "conv2d") if image else (y.shape[-1], "linear")
        kernel = (1, 1) if image else ()
        down, relu, up = (f"{y.name}.adapter_{part}" for part in ("down", "relu", "up"))
        shape = (self.width, wide, *kernel)
        parameters = (
            new_parameter(f"{down}.weight", shape, fan_in_init(shape, RELU_GAIN)),
            new_parameter(f"{down}.bias", shape[:1], Init("zeros")),
            new_parameter(f"{up}.weight", (wide, self.width, *kernel), Init("zeros")),
            new_parameter(f"{up}.bias", (wide,), Init("zeros")),
        )
        nodes = (
            Node(down, op, (base_of(y.name), f"{down}.weight", f"{down}.bias"), (down,)),
            Node(relu, "relu", (down,), (relu,)),
            Node(up, op, (relu, f"{up}.weight", f"{up}.bias"), (up,)),
            Node(f"{y.name}.adapter_sum", "add", (base_of(y.name), up), (y.name,)),
        )
        return Insertion(parameters, nodes)


def _branches(graph: Graph) -> Iterator[str]:
    """Return, for each residual sum, the one of its two terms that was made later."""
    nodes = anatomy.live_nodes(graph)
    made = {name: at for at, node in enumerate(nodes) for name in node.outputs}
    tensors = graph.by_name()
    for node in nodes:
        if node.op == "add" and tensors[node.outputs[0]].batched and tensors[node.outputs[0]].shape:
            yield max(node.inputs, key=lambda name: made.get(name, -1))


def _hidden_layers(method: str, graph: Graph) -> Iterator[str]:
    last = anatomy.last_layer(method, graph)
    yield from (node.outputs[0] for node in anatomy.layers(graph) if node is not last)
