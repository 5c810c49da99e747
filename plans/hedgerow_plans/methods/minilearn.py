"""MiniLearn: keep only the strongest filters of one convolution, train these and the linear layers behind them.

The model becomes smaller: the other filters are gone, with whatever the layers behind them knew about them. Which
filters are the strongest is not known when a plan is made; the device finds out from the base weights (the largest sum
of absolute values, as in the publication; its release keeps the weakest). So the kept parameters have names of their
own, `<name>.kept`, and a rule for their first values.
"""

from dataclasses import dataclass, replace

from hedgerow_plans.graph.ir import Graph, Init, Node, Tensor
from hedgerow_plans.methods import anatomy
from hedgerow_plans.methods.adapted import Adapted, MethodError, refuse, rewritten, train_only

_BY_CHANNEL = (*anatomy.ACTIVATIONS, "max_pool2d", "avg_pool2d", "global_avg_pool", "dropout", "scale")
"""Operators that treat each channel by itself and have no parameters."""


@dataclass(frozen=True, slots=True)
class MiniLearn:
    """Train the strongest filters of a convolution, the last one unless named, and all linear layers."""

    filters: int
    layer: str = ""

    @property
    def name(self) -> str:
        """Return the method's name in a TrainingJob."""
        return "minilearn"

    def apply(self, graph: Graph) -> Adapted:
        """Make the convolution narrower, and everything behind it up to the next layer that mixes channels."""
        if self.filters < 1:
            raise MethodError(f"Method minilearn keeps {self.filters} filters; keep at least 1.")
        layer = self._layer(graph)
        pruning = _Pruning(graph, layer, self.filters)
        pruned = rewritten(graph, self.name, pruning.parameters.values(), pruning.nodes())
        linear = [node for node in anatomy.live_nodes(pruned) if node.op == "linear"]
        trained = {name for node in linear for name in anatomy.own_parameters(pruned, node)}
        trained.update(f"{name}.kept" for name in layer.inputs[1:])
        return train_only(_without_unread(pruned), trained)

    def _layer(self, graph: Graph) -> Node:
        layers = anatomy.layers(graph)
        found = [node for node in layers[:-1] if node.op == "conv2d" and self.layer in ("", node.name)]
        if not found:
            known = [node.name for node in layers[:-1] if node.op == "conv2d"]
            remedy = f"name one of {anatomy.shown(known)}" if known else "choose another method"
            wanted = f"conv2d layer {self.layer!r}" if self.layer else "conv2d layer"
            raise refuse(self.name, graph, f"it has no {wanted} before its last layer; {remedy}")
        tensors, layer = graph.by_name(), found[-1]
        weight = tensors[layer.inputs[1]]
        if not weight.resident or anatomy.groups_of(layer) > 1:
            problem = f"layer {layer.name!r} is grouped or its weight is computed; name a plain convolution"
            raise refuse(self.name, graph, problem)
        if self.filters > weight.shape[0]:
            problem = f"layer {layer.name!r} has {weight.shape[0]} filters, fewer than {self.filters}; keep fewer"
            raise refuse(self.name, graph, problem)
        return layer


class _Pruning:
    """Follows the channels of a narrower convolution and narrows the parameters on their way."""

    def __init__(self, graph: Graph, layer: Node, filters: int) -> None:
        self._graph, self._layer, self._filters = graph, layer, filters
        self._tensors = graph.by_name()
        self._ranking = layer.inputs[1]
        self._all = self._tensors[self._ranking].shape[0]
        self.parameters: dict[str, Tensor] = {}

    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes of the graph, the narrower ones changed."""
        narrow: set[str] = set()
        nodes = []
        for node in self._graph.nodes:
            if node is self._layer:
                nodes.append(self._kept_inputs(node, range(1, len(node.inputs)), axis=0))
                narrow.add(node.outputs[0])
            elif narrow.isdisjoint(node.inputs):
                nodes.append(node)
            else:
                nodes.append(self._narrowed(node, narrow))
        return tuple(nodes)

    def _narrowed(self, node: Node, narrow: set[str]) -> Node:
        """Return a node that reads narrow channels; note its output unless it mixes them."""
        if node.op == "linear" or (node.op == "conv2d" and anatomy.groups_of(node) == 1):
            return self._kept_inputs(node, range(1, 2), axis=1)
        narrow.add(node.outputs[0])
        if node.op in _BY_CHANNEL:
            return node
        if node.op == "batch_norm":
            return self._kept_inputs(node, range(1, len(node.inputs)), axis=0)
        if node.op == "conv2d" and anatomy.groups_of(node) == self._all == self._tensors[node.inputs[1]].shape[0]:
            kept = self._kept_inputs(node, range(1, len(node.inputs)), axis=0)
            return replace(kept, attributes={**node.attributes, "groups": self._filters})
        if node.op == "reshape" and len(self._tensors[node.outputs[0]].shape) == 1:
            elements = self._tensors[node.outputs[0]].elements // self._all * self._filters
            return replace(node, attributes={"shape": (elements,)})
        problem = f"the filters of {self._layer.name!r} reach node {node.name!r} ({node.op}), which needs all of them"
        raise refuse("minilearn", self._graph, f"{problem}; name a layer whose channels go to one layer only")

    def _kept_inputs(self, node: Node, positions: range, axis: int) -> Node:
        """Return a node that reads narrower parameters, shorter along an axis."""
        inputs = list(node.inputs)
        for position in positions:
            source = self._tensors[node.inputs[position]]
            if not source.resident:
                problem = f"parameter {source.name!r} of node {node.name!r} is computed; name another layer"
                raise refuse("minilearn", self._graph, problem)
            shape = list(source.shape)
            shape[axis] = shape[axis] // self._all * self._filters
            init = Init("kept", source=source.name, ranking=self._ranking, axis=axis)
            kept = replace(source, name=f"{source.name}.kept", shape=tuple(shape), init=init)
            self.parameters[kept.name] = kept
            inputs[position] = kept.name
        return replace(node, inputs=tuple(inputs))


def _without_unread(graph: Graph) -> Graph:
    """Leave out the parameters that were replaced."""
    read = {name for node in graph.nodes for name in node.inputs}
    return replace(graph, tensors=tuple(t for t in graph.tensors if not t.resident or t.name in read))
