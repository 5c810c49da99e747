"""The same network, with the same parameters, for samples of another shape.

Layers are inferred again from the inputs on. A picture that is scaled up to be added to another one takes that one's
new size. A network whose parameters depend on the shape of its samples cannot be resized, and a sentence says where.
"""

from dataclasses import replace

from hedgerow_plans.graph import table
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Graph, Node, Tensor


def resized(graph: Graph, input_shape: tuple[int, ...]) -> Graph:
    """Return a forward graph for samples of a shape, or raise a sentence."""
    work = _Resizing(graph, input_shape)
    nodes = tuple(work.node(at) for at in range(len(graph.nodes)))
    tensors = tuple(work.tensors[tensor.name] for tensor in graph.tensors)
    return replace(graph, tensors=tensors, nodes=nodes)


class _Resizing:
    """Nodes and tensors at the new shape, made when somebody asks for them."""

    def __init__(self, graph: Graph, input_shape: tuple[int, ...]) -> None:
        self._graph = graph
        self._input_shape = input_shape
        self._made_at = {name: at for at, node in enumerate(graph.nodes) for name in node.outputs}
        self._readers: dict[str, list[Node]] = {}
        for node in graph.nodes:
            for name in node.inputs:
                self._readers.setdefault(name, []).append(node)
        self._nodes: dict[int, Node] = {}
        self.tensors: dict[str, Tensor] = {tensor.name: tensor for tensor in graph.resident()}

    def node(self, at: int) -> Node:
        """Return a node that fits the new shapes of its inputs."""
        if at not in self._nodes:
            node = self._fitted(self._graph.nodes[at])
            for name in node.inputs:
                self._tensor(name)
            self._nodes[at] = node
            self.tensors.update((tensor.name, tensor) for tensor in table.infer(node, self.tensors))
        return self._nodes[at]

    def _tensor(self, name: str) -> Tensor:
        if name not in self.tensors:
            self.node(self._made_at[name])
        return self.tensors[name]

    def _fitted(self, node: Node) -> Node:
        if node.op == "input" and node.attributes.get("field") == "x":
            return replace(node, attributes={**node.attributes, "shape": self._input_shape})
        if node.op == "upsample_bilinear":
            rows, columns = self._partner(node).shape[1:]
            return replace(node, attributes={**node.attributes, "size": (rows, columns)})
        return node

    def _partner(self, node: Node) -> Tensor:
        """Return what an image that was scaled up is added to."""
        for reader in self._readers.get(node.outputs[0], []):
            if reader.op == "add":
                (other,) = set(reader.inputs) - set(node.outputs)
                return self._tensor(other)
        raise GraphError(f"Graph {self._graph.name!r} cannot be resized: {node.name!r} scales up to a size of its own.")
