"""Graphs as bytes: what goes out comes back, equal graphs have equal digests, and hostile bytes get a sentence."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.codec import GRAPH_SCHEMA, decode_graph, encode_graph, graph_digest
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Graph, Node
from hedgerow_plans.methods.adapted import Adapted
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Sgd
from support.random_graphs import adapted_graphs

MANY = settings(max_examples=60, deadline=None)


def small() -> Graph:
    build = Builder("net")
    return build.graph(build.linear("logits", build.relu("hidden", build.input((3,))), 2))


@MANY
@given(adapted_graphs())
def test_what_is_encoded_comes_back_the_same(adapted: Adapted) -> None:
    for graph in (adapted.graph, *differentiate(adapted.graph, Sgd(momentum=0.9), 4).all()):
        encoded = encode_graph(graph)
        again = decode_graph(encoded)
        assert again == graph
        assert encode_graph(again) == encoded
        assert graph_digest(again) == graph_digest(graph)


def test_the_digest_of_a_graph_never_changes() -> None:
    """Digests name what is stored and sent: change the schema version with anything that changes this one."""
    assert GRAPH_SCHEMA == 2
    assert graph_digest(small()) == "89bfd8795e717a5d31062221d0e52915895bf6c05915b60c178a3f1fe72e7b93"


def test_the_order_in_which_attributes_were_given_does_not_matter() -> None:
    def pooled(**attributes: int) -> Graph:
        build = Builder("net")
        return build.graph(build.node("y", "max_pool2d", (build.input((1, 4, 4)),), **attributes))

    assert graph_digest(pooled(kernel=2, stride=2)) == graph_digest(pooled(stride=2, kernel=2))
    assert graph_digest(pooled(kernel=2, stride=2)) != graph_digest(pooled(kernel=2, stride=1))


def changed(path: tuple[str | int, ...], value: object) -> bytes:
    whole = json.loads(encode_graph(small()))
    place = whole
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return json.dumps(whole, sort_keys=True, separators=(",", ":")).encode("ascii")


@pytest.mark.parametrize(
    ("encoded", "sentence"),
    [
        (changed(("graph", "nodes", 1, "op"), "fft"), "There is no operator 'fft'; known are"),
        (changed(("graph", "tensors", 3, "shape"), [4]), "tensor 'hidden' is batched float32 [4], but node 'hidden'"),
        (changed(("graph", "tensors", 3, "shape"), [-3]), "shape[0] is -3; expected a whole number from 1"),
        (changed(("graph", "nodes", 1, "inputs"), ["hidden"]), "reads 'hidden' before it is made; put its maker first"),
        (changed(("graph", "nodes", 1, "attributes"), {"scale": math.nan}), "is nan; expected a finite number"),
        (changed(("graph", "nodes"), [{}] * 1_000_000), "is a list of 1000000; expected a list of at most 100000"),
        (changed(("schema",), 1), "The graph.schema is 1; expected a whole number from 2 to 2."),
        (encode_graph(small()) + b" ", "Graph 'net' is not in canonical form; encode it again"),
        (b"{", "The graph is not JSON in ASCII"),
        (b"[]", "The graph is a list of 0; expected an object."),
    ],
)
def test_bytes_that_are_no_graph_are_refused_with_a_sentence(encoded: bytes, sentence: str) -> None:
    with pytest.raises(GraphError) as refusal:
        decode_graph(encoded)
    assert sentence in str(refusal.value)
    assert str(refusal.value).endswith(".")


def test_a_graph_with_a_number_that_is_none_is_not_written() -> None:
    graph = small()
    broken = replace(graph, nodes=(*graph.nodes, Node("n", "scale", ("x",), ("y",), (), {"scale": math.nan})))
    with pytest.raises(GraphError, match="Graph 'net' cannot be written: an attribute or a first value"):
        encode_graph(broken)


@MANY
@given(st.binary(max_size=200))
def test_noise_is_refused_with_a_sentence(noise: bytes) -> None:
    with pytest.raises(GraphError):
        decode_graph(noise)


@MANY
@given(st.integers(0), st.integers(0, 255))
def test_no_single_wrong_byte_gives_another_valid_graph_with_the_same_bytes(position: int, value: int) -> None:
    encoded = bytearray(encode_graph(small()))
    encoded[position % len(encoded)] = value
    try:
        graph = decode_graph(bytes(encoded))
    except GraphError:
        return
    assert encode_graph(graph) == bytes(encoded)
