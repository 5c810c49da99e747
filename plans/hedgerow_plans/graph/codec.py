"""Graphs as canonical bytes and back: one graph, one byte string, one digest.

Canonical is JSON in ASCII with sorted keys, no spaces and finite floats, with a schema version beside the graph.
Decoding trusts nothing and ends with a checked graph or a GraphError with a sentence. The pieces are shared with the
codec of programs, which hold graphs without a schema of their own.
"""

import hashlib
import json

from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Attribute, DType, Graph, Init, Node, Order, Role, Section, Tensor
from hedgerow_plans.graph.validate import check
from hedgerow_plans.untrusted import Untrustworthy, Value, parse

GRAPH_SCHEMA = 2
"""Raised whenever the JSON of a graph changes its meaning."""

MOST_BYTES = 64 * 1024 * 1024
"""Largest encoded graph; BERT-base as a training graph has about one megabyte."""

_MOST_TENSORS = 100_000
_MOST_NAMES = 64  # inputs, outputs, attributes of one node
_MOST_DIMENSIONS = 8

Json = dict[str, object]


def encode_graph(graph: Graph) -> bytes:
    """Return the canonical bytes of a graph; raise GraphError if it holds a number JSON cannot."""
    whole = {"schema": GRAPH_SCHEMA, "graph": graph_out(graph)}
    try:
        text = json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except ValueError:
        problem = "an attribute or a first value is not a finite number"
        raise GraphError(f"Graph {graph.name!r} cannot be written: {problem}; give it one.") from None
    return text.encode("ascii")


def decode_graph(encoded: bytes) -> Graph:
    """Return the valid graph these bytes stand for; raise GraphError, and nothing else, if there is none."""
    try:
        graph = _whole_in(parse(encoded, "The graph", MOST_BYTES))
    except Untrustworthy as error:
        raise GraphError(str(error)) from None
    check(graph)
    if encode_graph(graph) != encoded:
        raise GraphError(f"Graph {graph.name!r} is not in canonical form; encode it again with this version.")
    return graph


def graph_digest(graph: Graph) -> str:
    """Return the sha256 of a graph's canonical bytes: equal graphs, equal digests, whoever computes them."""
    return hashlib.sha256(encode_graph(graph)).hexdigest()


def _whole_in(value: Value) -> Graph:
    schema, graph = value.record("schema", "graph")
    schema.integer(GRAPH_SCHEMA, GRAPH_SCHEMA)
    return graph_in(graph)


def graph_out(graph: Graph) -> Json:
    """Return a graph as what `json.dumps` takes."""
    return {
        "name": graph.name,
        "tensors": [_tensor_out(tensor) for tensor in graph.tensors],
        "nodes": [_node_out(node) for node in graph.nodes],
        "outputs": graph.outputs,
    }


def graph_in(value: Value) -> Graph:
    """Return the graph that parsed JSON stands for; raise Untrustworthy if it is none."""
    name, tensors, nodes, outputs = value.record("name", "tensors", "nodes", "outputs")
    return Graph(
        name.text(),
        tuple(_tensor_in(item) for item in tensors.items(_MOST_TENSORS)),
        tuple(_node_in(item) for item in nodes.items(_MOST_TENSORS)),
        outputs.texts(_MOST_NAMES),
    )


def _tensor_out(tensor: Tensor) -> Json:
    return {
        "name": tensor.name,
        "shape": tensor.shape,
        "dtype": tensor.dtype,
        "batched": tensor.batched,
        "role": tensor.role,
        "init": None if tensor.init is None else _init_out(tensor.init),
        "order": tensor.order,
    }


def _tensor_in(value: Value) -> Tensor:
    names = ("name", "shape", "dtype", "batched", "role", "init", "order")
    name, shape, dtype, batched, role, init, order = value.record(*names)
    return Tensor(
        name.text(),
        tuple(item.integer(1, 2**31 - 1) for item in shape.items(_MOST_DIMENSIONS)),
        DType(choice_of(dtype, tuple(DType))),
        batched.flag(),
        Role(choice_of(role, tuple(Role))),
        None if init.raw is None else _init_in(init),
        Order(choice_of(order, tuple(Order))),
    )


def _init_out(init: Init) -> list[object]:
    """Return two items, and three more for values that are taken from another tensor."""
    origin: list[object] = [init.source, init.ranking, init.axis] if init.source else []
    return [init.kind, float(init.scale), *origin]


def _init_in(value: Value) -> Init:
    if isinstance(value.raw, list) and len(value.raw) == 2:
        kind, scale = row_of(value, 2)
        return Init(kind.text(), scale.number())
    kind, scale, source, ranking, axis = row_of(value, 5)
    return Init(kind.text(), scale.number(), source.text(), ranking.text(), axis.integer(0, _MOST_DIMENSIONS))


def _node_out(node: Node) -> Json:
    return {
        "name": node.name,
        "op": node.op,
        "inputs": node.inputs,
        "outputs": node.outputs,
        "updates": node.updates,
        "attributes": dict(node.attributes),
        "section": node.section,
    }


def _node_in(value: Value) -> Node:
    names = ("name", "op", "inputs", "outputs", "updates", "attributes", "section")
    name, op, inputs, outputs, updates, attributes, section = value.record(*names)
    return Node(
        name.text(),
        op.text(),
        inputs.texts(_MOST_NAMES),
        outputs.texts(_MOST_NAMES),
        updates.texts(_MOST_NAMES),
        {key: _attribute_in(item) for key, item in attributes.mapping(_MOST_NAMES).items()},
        Section(choice_of(section, tuple(Section))),
    )


def _attribute_in(value: Value) -> Attribute:
    match value.raw:
        case bool():
            return value.flag()
        case int():
            return value.integer(-(2**53) + 1)
        case float():
            return value.number()
        case str():
            return value.text()
        case _:
            return value.integers(_MOST_NAMES, -(2**53) + 1)


def row_of(value: Value, length: int) -> list[Value]:
    """Return the items of a list that has exactly this length."""
    row = value.items(length)
    if len(row) != length:
        value.refuse(f"a list of {length}")
    return row


def choice_of(value: Value, choices: tuple[str, ...]) -> str:
    """Return a text that is one of these."""
    if value.text() not in choices:
        value.refuse(f"one of {', '.join(choices)}")
    return value.text()
