"""Graphs that must not reach a planner or a device, each refused with a sentence that says what to do."""

import math
from dataclasses import replace

import pytest

from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import DType, Graph, Init, Node, Role, Section, Tensor
from hedgerow_plans.graph.validate import MAXIMUM_NODES, check, problems

UNTRAINED = Tensor("w", (2, 3), batched=False, role=Role.FROZEN)


def valid() -> Graph:
    build = Builder("net")
    x = build.input((3,))
    return build.graph(build.linear("logits", build.relu("hidden", x), 2))


def with_tensor(changed: Tensor) -> Graph:
    graph = valid()
    return replace(graph, tensors=tuple(changed if t.name == changed.name else t for t in graph.tensors))


def with_nodes(*nodes: Node) -> Graph:
    return replace(valid(), nodes=nodes)


def with_more(tensors: tuple[Tensor, ...] = (), nodes: tuple[Node, ...] = ()) -> Graph:
    graph = valid()
    return replace(graph, tensors=graph.tensors + tensors, nodes=graph.nodes + nodes)


def relu(name: str, x: str, y: str) -> Node:
    return Node(name, "relu", (x,), (y,))


def sgd(name: str) -> Node:
    return Node(name, "sgd", ("gradient",), (), ("trained",))


def accumulate(total: str) -> Node:
    return Node("a", "accumulate", ("gradient",), (), (total,))


VALID = valid()
A, B = Tensor("a", (3,)), Tensor("b", (3,))
TOTAL = Tensor("total", (3,), batched=False)
GRADIENT = Tensor("gradient", (3,), batched=False)
MAKES_GRADIENT = Node("g", "bias_grad", ("x",), ("gradient",))
MAKES_TOTAL = Node("h", "bias_grad", ("x",), ("total",))
TRAINED = Tensor("trained", (3,), batched=False, role=Role.TRAINABLE)


def test_a_graph_of_the_builder_is_valid() -> None:
    assert list(problems(valid())) == []
    check(valid())


@pytest.mark.parametrize(
    ("graph", "problem"),
    [
        (
            with_more(nodes=(Node("n", "fft", ("x",), ()),)),
            "There is no operator 'fft'; known are accumulate, accumulate_slope, adam,",
        ),
        (with_more((A,), (Node("n", "relu", ("x", "x"), ("a",)),)), "Node 'n' (relu): it has 2 inputs; give it 1."),
        (with_tensor(Tensor("hidden", (4,))), "tensor 'hidden' is batched float32 [4], but node 'hidden' (relu) makes"),
        (with_tensor(Tensor("hidden", (3,), DType.INT32)), "tensor 'hidden' is batched int32 [3]"),
        (with_tensor(Tensor("hidden", (-3,))), "tensor 'hidden' has shape (-3,); give it dimensions from 1"),
        (with_tensor(Tensor("hidden", (0,))), "tensor 'hidden' has shape (0,)"),
        (with_tensor(Tensor("hidden", (1,) * 9)), "tensor 'hidden' has shape"),
        (with_tensor(Tensor("hidden", (2**30, 2**30))), "tensor 'hidden' has 1152921504606846976 elements; the limit"),
        (with_tensor(Tensor("logits.weight", (2, 3), role=Role.FROZEN)), "is frozen and has a batch axis"),
        (with_tensor(replace(UNTRAINED, name="logits.weight", dtype=DType.INT8)), "'logits.weight' holds int8"),
        (with_more((replace(TRAINED, dtype=DType.INT8),)), "'trained' is trainable and int8; only float32"),
        (with_more((replace(UNTRAINED, init=Init("xavier")),)), "tensor 'w' starts as 'xavier'; choose zeros,"),
        (with_more((replace(UNTRAINED, init=Init("normal", math.nan)),)), "tensor 'w' starts with the scale nan"),
        (with_tensor(Tensor("hidden", (3,), init=Init())), "'hidden' is transient and has first values"),
        (with_more((VALID.tensors[0],)), "two tensors are called 'logits.weight'; rename one"),
        (with_more(nodes=(VALID.nodes[0],)), "two nodes are called 'x'; rename one"),
        (with_more(nodes=(relu("n", "x", "hidden"),)), "tensor 'hidden' is made twice, by 'hidden' and 'n'"),
        (with_more((A,)), "tensor 'a' is never made"),
        (with_more(nodes=(relu("n", "x", "gone"),)), "node 'n' speaks of 'gone', which is no tensor of the graph"),
        (with_more(nodes=(relu("n", "x", "logits.bias"),)), "node 'n' makes 'logits.bias', which is frozen"),
        (replace(VALID, outputs=("logits.bias",)), "output 'logits.bias' is not made by any node"),
        (replace(VALID, outputs=("nothing",)), "output 'nothing' is not made by any node"),
        (replace(VALID, outputs=("logits", "logits")), "two outputs are called 'logits'"),
        (with_nodes(*reversed(VALID.nodes)), "node 'logits' reads 'hidden' before it is made; put its maker first"),
        (with_more((A, B), (relu("n", "b", "a"), relu("m", "a", "b"))), "node 'n' reads 'b' before it is made"),
        (with_more((A,), (relu("n", "a", "a"),)), "node 'n' reads 'a' before it is made"),
        (with_more((Tensor("n" * 201, (1,)),)), "has 201 characters; use 1 to 200"),
        (with_more((Tensor("", (1,)),)), "has 0 characters"),
        (with_more((A,), (Node("n", "relu", ("x",) * 65, ("a",)),)), "node 'n' speaks of 66 tensors; the limit is 64"),
        (with_more((A,), (Node("n", "scale", ("x",), ("a",), (), {"scale": math.nan}),)), "attribute 'scale' is nan"),
        (
            with_more((TOTAL,), (Node("n", "zero", (), ("total",), (), {"shape": (3,)}, Section.BEGIN),)),
            "node 'n' of section begin comes after section body",
        ),
        (
            with_more((A,), (Node("n", "relu", ("x",), ("a",), section=Section.FINISH),)),
            "node 'n' reads 'x' after the body, where it is gone",
        ),
        (
            with_more((A,), (Node("n", "input", (), ("a",), (), {"field": "x", "shape": (3,)}, Section.FINISH),)),
            "node 'n' makes 'a' with a batch axis in section finish",
        ),
        (
            with_more((GRADIENT, TRAINED), (MAKES_GRADIENT, sgd("u"), sgd("again"))),
            "node 'again' reads 'trained' after 'u' changed it; move the update down",
        ),
        (
            with_more((GRADIENT, TOTAL), (MAKES_GRADIENT, MAKES_TOTAL, accumulate("total"))),
            "node 'a' updates 'total' in place; only a tensor made before the body can be",
        ),
        (
            with_more((GRADIENT,), (MAKES_GRADIENT, accumulate("gradient"))),
            "node 'a' changes its own input 'gradient'",
        ),
        (
            with_more((GRADIENT, replace(TRAINED, role=Role.FROZEN)), (MAKES_GRADIENT, sgd("u"))),
            "'trained' is frozen; it can only update a trainable tensor here",
        ),
    ],
)
def test_a_broken_graph_is_refused_with_a_sentence(graph: Graph, problem: str) -> None:
    found = list(problems(graph))
    assert found
    assert any(problem in sentence for sentence in found), found
    assert all(sentence.startswith("Graph 'net': ") and sentence.endswith(".") for sentence in found)
    with pytest.raises(GraphError):
        check(graph)


def test_all_problems_of_a_stage_are_told_at_once() -> None:
    graph = with_more((A, B))
    assert [sentence.split(":")[1].split(";")[0] for sentence in problems(graph)] == [
        " tensor 'a' is never made",
        " tensor 'b' is never made",
    ]


def test_a_graph_above_the_limit_is_refused_before_any_work() -> None:
    # One node object, 100,001 times: anything but counting would complain about its name first.
    graph = replace(valid(), nodes=(valid().nodes[0],) * (MAXIMUM_NODES + 1))
    assert list(problems(graph)) == ["Graph 'net': it has 100001 nodes; the limit is 100000."]
