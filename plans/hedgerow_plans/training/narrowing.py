"""Computing only the tokens that somebody reads.

A classifier on an encoder reads one token of the last layer, and nearly everything in that layer works on each token by
itself. So the cut goes up through such nodes: they compute one token instead of all, forward and backward, and every
number that is still computed is what it was.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import Graph, Node, Tensor

_ACTIVATIONS = ("relu", "relu6", "gelu", "tanh", "sigmoid", "silu", "hswish")
_NORMS = ("layer_norm", "rms_norm")
_BY_TOKEN: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        **dict.fromkeys(("linear", "scale", *_ACTIVATIONS, *_NORMS), (0,)),
        **dict.fromkeys(("add", "mul"), (0, 1)),
        "multi_head_attention": (0,),  # of the queries; every one reads all keys and values
    }
)
"""Operators that make each token of their result from the same token of these inputs."""

_Tokens = tuple[int, int]
"""The first one, and how many."""


def narrowed(graph: Graph) -> Graph:
    """Return a valid forward graph that computes the same outputs from as few tokens as they depend on."""
    while (narrower := _with_one_cut_further_up(graph)) is not None:
        graph = narrower
    return graph


def _with_one_cut_further_up(graph: Graph) -> Graph | None:
    tensors, readers = graph.by_name(), _readers(graph.nodes)
    for maker in reversed(graph.nodes):
        if len(maker.outputs) != 1 or maker.outputs[0] in graph.outputs or not _works_by_token(maker, tensors):
            continue
        cuts = readers.get(maker.outputs[0], [])
        wanted = {_tokens(cut, tensors) for cut in cuts}
        if len(wanted) == 1 and (tokens := wanted.pop()) is not None:
            return _cut_before(graph, maker, cuts, tokens)
    return None


def _readers(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    readers: dict[str, list[Node]] = {}
    for node in nodes:
        for name in dict.fromkeys(node.inputs):
            readers.setdefault(name, []).append(node)
    return readers


def _works_by_token(node: Node, tensors: Mapping[str, Tensor]) -> bool:
    if node.op not in _BY_TOKEN or not _is_sequence(tensors[node.outputs[0]]):
        return False
    over_all = node.op in _NORMS and len(tensors[node.inputs[1]].shape) > 1
    return not over_all and all(_is_sequence(tensors[node.inputs[at]]) for at in _BY_TOKEN[node.op])


def _is_sequence(tensor: Tensor) -> bool:
    return tensor.batched and len(tensor.shape) == 2


def _tokens(node: Node, tensors: Mapping[str, Tensor]) -> _Tokens | None:
    """Return which tokens a node cuts out of a sequence; None if it does anything else."""
    if node.op != "slice":
        return None
    start, shape, whole = node.attributes["start"], node.attributes["shape"], tensors[node.inputs[0]].shape
    if not isinstance(start, tuple) or not isinstance(shape, tuple) or shape[1:] != whole[1:]:
        return None
    return int(start[0]), int(shape[0])


def _cut_before(graph: Graph, maker: Node, cuts: Iterable[Node], tokens: _Tokens) -> Graph:
    """Return the graph with a maker that is given some tokens only, and read where these were cut out of its result."""
    tensors = graph.by_name()
    sources = [maker.inputs[at] for at in _BY_TOKEN[maker.op]]
    added = {name: _cut(tensors[name], tokens) for name in sources}
    narrow = {name: node.outputs[0] for name, node in added.items()}
    inputs = tuple(
        narrow.get(name, name) if at in _BY_TOKEN[maker.op] else name for at, name in enumerate(maker.inputs)
    )
    gone = {cut.outputs[0]: maker.outputs[0] for cut in cuts}
    known, nodes = {node.name for node in graph.nodes}, list[Node]()
    for node in graph.nodes:
        if node is maker:
            nodes.append(replace(node, inputs=inputs))
        elif not gone.keys() & set(node.outputs):
            nodes.append(replace(node, inputs=tuple(gone.get(name, name) for name in node.inputs)))
        nodes += [added[name] for name in node.outputs if name in added and added[name].name not in known]
    outputs = tuple(gone.get(name, name) for name in graph.outputs)
    return replace(graph, nodes=tuple(nodes), tensors=_tensors(graph, nodes), outputs=outputs)


def _cut(source: Tensor, tokens: _Tokens) -> Node:
    first, count = tokens
    name = f"{source.name}.tokens{first}to{first + count}"
    attributes = {"start": (first, 0), "shape": (count, source.shape[1])}
    return Node(name, "slice", (source.name,), (name,), attributes=attributes)


def _tensors(graph: Graph, nodes: Iterable[Node]) -> tuple[Tensor, ...]:
    known = {tensor.name: tensor for tensor in graph.resident()}
    for node in nodes:
        known.update((tensor.name, tensor) for tensor in table.infer(node, known))
    return tuple(known.values())
