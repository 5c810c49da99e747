"""Batch norms and dropout in the graphs of a job: who uses which statistics, who moves them, and what is refused."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from hedgerow_plans.graph import running_statistics
from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Graph, Node, Role, Section
from hedgerow_plans.graph.validate import check
from hedgerow_plans.methods.adapted import train_only
from hedgerow_plans.methods.catalogue import Full, Last
from hedgerow_plans.training.graphs import TrainingGraphs, differentiate
from hedgerow_plans.training.optimizers import Sgd

STATISTICS = ("bn.running_mean", "bn.running_var")


def normed(statistics: str = "batch", rate: float = 0.5) -> Graph:
    build = Builder("normed")
    x = build.conv2d("conv", build.input((2, 4, 4)), 3)
    x = build.activation("act", build.batch_norm("bn", x, statistics=statistics), "relu6")
    x = build.dropout("drop", build.flatten("flat", x), rate)
    return build.graph(build.linear("logits", x, 2))


def trained(graph: Graph, batch_size: int = 8) -> TrainingGraphs:
    graphs = differentiate(graph, Sgd(0.9), batch_size)
    for made in graphs.all():
        check(made)
    return graphs


def named(graph: Graph, name: str) -> Node:
    (found,) = [node for node in graph.nodes if node.name == name]
    return found


def test_statistics_that_train_are_moved_once_after_the_loss_and_belong_to_the_delta() -> None:
    graphs = trained(Full().apply(normed()).graph)
    direct = graphs.direct
    names = [node.name for node in direct.nodes]
    move = named(direct, "move.bn")
    assert move.updates == STATISTICS
    assert (move.inputs, move.section, dict(move.attributes)) == (
        ("statistics.bn",),
        Section.BODY,
        {"momentum": 0.1, "samples": 8 * 16},
    )
    assert names.index("losses") < names.index("grad.bn.weight") < names.index("move.bn")
    assert [name for name in names if name.startswith("move.")] == ["move.bn"]
    assert set(STATISTICS) <= set(graphs.delta)


def test_a_norm_that_learns_does_not_read_what_is_moved() -> None:
    norm = named(trained(Full().apply(normed()).graph).direct, "bn")
    assert norm.inputs == ("conv", "bn.weight", "bn.bias")
    assert norm.outputs == ("bn", "statistics.bn")
    assert norm.attributes["statistics"] == "batch"


def test_statistics_have_neither_gradient_nor_optimiser_state() -> None:
    tensors = trained(Full().apply(normed()).graph).direct.by_name()
    for name in STATISTICS:
        assert tensors[name].role is Role.TRAINABLE
        assert not {f"grad.{name}", f"velocity.{name}"} & set(tensors)


@pytest.mark.parametrize("statistics", ["batch", "running"])
def test_evaluation_uses_running_statistics_and_drops_nothing(statistics: str) -> None:
    evaluate = trained(Full().apply(normed(statistics)).graph).evaluate
    norm = named(evaluate, "bn")
    assert norm.inputs[3:] == STATISTICS
    assert norm.attributes["statistics"] == "running"
    assert "drop" not in evaluate.by_name()
    assert named(evaluate, "logits").inputs[0] == "flat"


def test_dropout_as_the_last_layer_leaves_its_input_as_logits() -> None:
    build = Builder("late")
    x = build.dropout("logits", build.linear("fc", build.input((3,)), 2), 0.5)
    evaluate = trained(Full().apply(build.graph(x)).graph).evaluate
    assert evaluate.outputs == ("fc", "losses")


@pytest.mark.parametrize("graph", [Last().apply(normed()).graph, Full().apply(normed("running")).graph])
def test_frozen_statistics_are_used_as_they_are_and_the_batch_may_be_cut(graph: Graph) -> None:
    graphs = trained(graph)
    assert graphs.why_whole == ""
    assert not set(STATISTICS) & set(graphs.delta)
    for made in (graphs.direct, graphs.accumulating):
        norm = named(made, "bn")
        assert norm.attributes["statistics"] == "running"
        assert norm.outputs == ("bn",)


def test_what_is_computed_before_the_first_trained_tensor_saves_nothing() -> None:
    direct = trained(Last().apply(normed()).graph).direct
    assert [node.name for node in direct.nodes if len(node.outputs) > 1] == ["losses"]


def test_a_batch_whose_statistics_are_learned_is_never_cut_and_the_reason_is_a_sentence() -> None:
    graphs = trained(Full().apply(normed()).graph)
    assert [graph.name for graph in graphs.all()] == ["direct", "evaluate"]
    assert graphs.why_whole == (
        "The batch is never cut into micro-batches, because 'bn' learns from the statistics of the whole batch; "
        "a method that freezes them allows it."
    )
    with pytest.raises(GraphError, match="never cut into micro-batches"):
        _ = graphs.accumulating


def test_statistics_alone_can_be_trained() -> None:
    graphs = trained(train_only(normed(), STATISTICS).graph)
    assert graphs.delta == STATISTICS
    assert named(graphs.direct, "move.bn").updates == STATISTICS
    assert not [name for name in graphs.direct.by_name() if name.startswith("grad.")]


def test_running_statistics_are_known_by_name() -> None:
    assert running_statistics.names(normed()) == set(STATISTICS)
    assert running_statistics.fixed(normed("running").nodes) == set(STATISTICS)
    assert running_statistics.fixed(normed().nodes) == frozenset()


def with_role(graph: Graph, name: str, role: Role) -> Graph:
    return replace(graph, tensors=tuple(replace(t, role=role) if t.name == name else t for t in graph.tensors))


def shared() -> Graph:
    build = Builder("shared")
    x = build.batch_norm("bn", build.input((3, 2, 2)))
    x = build.node("again", "batch_norm", (x, "bn.weight", "bn.bias", *STATISTICS), statistics="batch")
    return Full().apply(build.graph(build.linear("logits", build.flatten("flat", x), 2))).graph


def a_vector_norm() -> Graph:
    build = Builder("vector")
    return Full().apply(build.graph(build.linear("logits", build.batch_norm("bn", build.input((3,))), 2))).graph


def without_running() -> Graph:
    build = Builder("bare")
    x = build.batch_norm("bn", build.input((3,)))
    x = build.node("bare", "batch_norm", (x, "bn.weight", "bn.bias"), statistics="batch")
    return Full().apply(build.graph(build.linear("logits", x, 2))).graph


@pytest.mark.parametrize(
    ("graph", "batch_size", "sentence"),
    [
        (
            lambda: with_role(Full().apply(normed()).graph, STATISTICS[1], Role.FROZEN),
            8,
            "only 'bn.running_var' is frozen; train all or none.",
        ),
        (
            lambda: with_role(Full().apply(normed("running")).graph, STATISTICS[0], Role.TRAINABLE),
            8,
            "its statistics are 'running' and 'bn.running_mean' is trainable; freeze it, or say 'batch'.",
        ),
        (shared, 8, "Running statistics 'bn.running_mean' belong to 2 norms; freeze them to train."),
        (a_vector_norm, 1, "one value per channel has no variance; train with a larger batch."),
        (without_running, 8, "has no running statistics to evaluate with; give it a running mean and variance."),
    ],
)
def test_statistics_that_cannot_be_trained_are_refused(
    graph: Callable[[], Graph], batch_size: int, sentence: str
) -> None:
    with pytest.raises(GraphError) as refusal:
        trained(graph(), batch_size)
    assert str(refusal.value).endswith(sentence)
