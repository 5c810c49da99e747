"""TinyOL: one trained layer on features that are standardised as they come in; the model itself stays as it is.

The layer replaces the last one, or goes on top of it. Mean and variance of its inputs are those of all samples seen so
far; they move with each step and belong to the delta. With batches of one this is learning sample by sample, and
nothing but the layer and its input is kept for the backward.
"""

from dataclasses import dataclass, replace

from hedgerow_plans.graph.builder import fan_in_init
from hedgerow_plans.graph.ir import Graph, Init, Node
from hedgerow_plans.methods import anatomy
from hedgerow_plans.methods.adapted import Adapted, base_of, new_parameter, refuse, rewritten, train_only

LAYER = "tinyol"


@dataclass(frozen=True, slots=True)
class TinyOl:
    """Train one layer in place of the last one, or on top of it."""

    on_top: bool = False

    @property
    def name(self) -> str:
        """Return the method's name in a TrainingJob."""
        return "tinyol"

    def apply(self, graph: Graph) -> Adapted:
        """Put in the layer and the standardisation before it."""
        if len(graph.outputs) != 1:
            raise refuse(self.name, graph, f"it has {len(graph.outputs)} outputs; give it one")
        output, tensors = graph.outputs[0], graph.by_name()
        features, nodes = _on_top(graph, output) if self.on_top else self._before_last(graph, output)
        width = tensors[output if self.on_top else features].shape
        if len(width) != 1 or len(tensors[output].shape) != 1:
            raise refuse(self.name, graph, "its last layer does not work on one row of features; choose last")
        shape = (tensors[output].shape[0], width[0])
        statistics = {"mean": (width, "zeros"), "variance": (width, "ones"), "samples": ((1,), "zeros")}
        parameters = [
            new_parameter(f"{LAYER}.weight", shape, fan_in_init(shape, gain=1.0)),
            new_parameter(f"{LAYER}.bias", shape[:1], Init("zeros")),
            *(new_parameter(f"{LAYER}.{part}", size, Init(kind)) for part, (size, kind) in statistics.items()),
        ]
        standard, added = f"{LAYER}.standardised", tuple(parameter.name for parameter in parameters)
        nodes += (
            Node(standard, "standardise", (features, *added[2:]), (standard,)),
            Node(LAYER, "linear", (standard, *added[:2]), (output,)),
        )
        return train_only(_without_unread(rewritten(graph, self.name, parameters, nodes)), added)

    def _before_last(self, graph: Graph, output: str) -> tuple[str, tuple[Node, ...]]:
        """Return the features that the last layer reads, and all nodes but that layer."""
        last = anatomy.last_layer(self.name, graph)
        if last.op != "linear" or last.outputs != (output,):
            raise refuse(self.name, graph, "it does not end in a linear layer; put the new one on top of it")
        return last.inputs[0], tuple(node for node in graph.nodes if node is not last)


def _on_top(graph: Graph, output: str) -> tuple[str, tuple[Node, ...]]:
    """Return the output under its base name, and the nodes that make it so."""
    base = base_of(output)
    nodes = (replace(n, outputs=(base, *n.outputs[1:])) if output in n.outputs[:1] else n for n in graph.nodes)
    return base, tuple(nodes)


def _without_unread(graph: Graph) -> Graph:
    """Leave out the parameters of a layer that was replaced."""
    read = {name for node in graph.nodes for name in node.inputs}
    return replace(graph, tensors=tuple(t for t in graph.tensors if not t.resident or t.name in read))
