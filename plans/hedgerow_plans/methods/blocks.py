"""Where a network's blocks of convolutions begin and end, found from the graph alone.

Inverted residual blocks are looked for first, then residual sums, and if there are none of either every convolution
counts as a block of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from hedgerow_plans.graph.ir import Graph, Node
from hedgerow_plans.methods import anatomy


@dataclass(frozen=True, slots=True)
class Block:
    """Part of a network from the image it reads to the image it makes."""

    source: str
    result: str


def blocks(graph: Graph) -> tuple[Block, ...]:
    """Return the blocks in order; none if the graph has no convolutions of images."""
    outline = _Outline(graph)
    for find in (outline.inverted_residuals, outline.residual_sums, outline.convolutions):
        found = {block.result: block for block in find()}
        if found:
            return tuple(found.values())
    return ()


class _Outline:
    """A graph with its makers and readers at hand."""

    def __init__(self, graph: Graph) -> None:
        self._nodes = anatomy.live_nodes(graph)
        self._tensors = graph.by_name()
        self._outputs = frozenset(graph.outputs)
        self._makers = {name: node for node in self._nodes for name in node.outputs}
        self._readers: dict[str, list[Node]] = {}
        for node in self._nodes:
            for name in node.inputs:
                self._readers.setdefault(name, []).append(node)

    def inverted_residuals(self) -> Iterator[Block]:
        """Return what expands pointwise, filters by channel and projects pointwise without an activation."""
        for node in self._nodes:
            expansion = self._behind(node.inputs[0]) if self._is_depthwise(node) else None
            projection = self._ahead(node.outputs[0]) if expansion is not None else None
            if expansion is None or projection is None or not self._widens(expansion):
                continue
            result = self._normed(projection.outputs[0])
            if not any(reader.op in anatomy.ACTIVATIONS for reader in self._readers.get(result, ())):
                yield Block(expansion.inputs[0], result)

    def residual_sums(self) -> Iterator[Block]:
        """Return what lies between a sum of images and the last image that both of its terms depend on."""
        above: dict[str, int] = {}  # the positions of all nodes a tensor depends on, as bits
        for at, node in enumerate(self._nodes):
            bits = 1 << at
            for name in node.inputs:
                bits |= above.get(name, 0)
            above.update(dict.fromkeys(node.outputs, bits))
            if node.op != "add" or not anatomy.is_image(self._tensors[node.outputs[0]]):
                continue
            common = above.get(node.inputs[0], 0) & above.get(node.inputs[1], 0)
            source = self._nodes[common.bit_length() - 1].outputs[0] if common else ""
            if source and anatomy.is_image(self._tensors[source]):
                yield Block(source, node.outputs[0])

    def convolutions(self) -> Iterator[Block]:
        """Return every convolution but one that is the last layer."""
        layers = [node for node in self._nodes if node.op in anatomy.LAYERS]
        yield from (Block(node.inputs[0], node.outputs[0]) for node in layers[:-1] if node.op == "conv2d")

    def _is_depthwise(self, node: Node) -> bool:
        return node.op == "conv2d" and anatomy.groups_of(node) == self._tensors[node.inputs[0]].shape[0] > 1

    def _is_pointwise(self, node: Node) -> bool:
        kernel = self._tensors[node.inputs[1]].shape[2:]
        return node.op == "conv2d" and kernel == (1, 1) and anatomy.groups_of(node) == 1

    def _widens(self, node: Node) -> bool:
        outputs, inputs = self._tensors[node.inputs[1]].shape[:2]
        return outputs > inputs

    def _behind(self, name: str) -> Node | None:
        """Return the pointwise convolution that a tensor comes from, through norms and activations."""
        node = self._makers.get(name)
        while node is not None and node.op in anatomy.NORMS + anatomy.ACTIVATIONS:
            node = self._makers.get(node.inputs[0])
        return node if node is not None and node.op == "conv2d" and self._is_pointwise(node) else None

    def _ahead(self, name: str) -> Node | None:
        """Return the pointwise convolution that a tensor goes to, through norms and activations."""
        node = self._sole_reader(name)
        while node is not None and node.op in anatomy.NORMS + anatomy.ACTIVATIONS:
            node = self._sole_reader(node.outputs[0])
        return node if node is not None and node.op == "conv2d" and self._is_pointwise(node) else None

    def _normed(self, name: str) -> str:
        reader = self._sole_reader(name)
        return reader.outputs[0] if reader is not None and reader.op in anatomy.NORMS else name

    def _sole_reader(self, name: str) -> Node | None:
        readers = self._readers.get(name, [])
        return readers[0] if len(readers) == 1 and name not in self._outputs else None
