"""Differentiating at plan time: which gradients exist, when updates happen, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Graph, Init, Role, Section
from hedgerow_plans.graph.text import render
from hedgerow_plans.graph.validate import check
from hedgerow_plans.methods.adapted import train_only
from hedgerow_plans.methods.catalogue import Full, Last, Lora
from hedgerow_plans.models import zoo
from hedgerow_plans.models.perceptron import mlp
from hedgerow_plans.training.graphs import TrainingGraphs, differentiate
from hedgerow_plans.training.optimizers import Sgd

GOLDEN = Path(__file__).parent / "golden"


def trained(graph: Graph, optimizer: Sgd | None = None, batch_size: int = 16) -> TrainingGraphs:
    return differentiate(graph, optimizer or Sgd(), batch_size)


def ops(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


@pytest.mark.parametrize("name", ["direct", "accumulating", "evaluate"])
def test_a_small_training_graph_reads_as_expected(name: str) -> None:
    graphs = trained(Full().apply(mlp(3, (4,), hidden=(5,))).graph, Sgd(momentum=0.9, weight_decay=0.0001))
    (graph,) = [graph for graph in graphs.all() if graph.name == name]
    assert render(graph) == (GOLDEN / f"mlp-{name}.txt").read_text(encoding="utf-8")


def test_training_the_last_layer_differentiates_that_layer_only() -> None:
    graphs = trained(Last().apply(zoo.build("cnn-small")).graph)
    gradients = {tensor.name for tensor in graphs.direct.tensors if tensor.name.startswith("grad.")}
    assert gradients == {"grad.logits", "grad.logits.weight", "grad.logits.bias"}
    saved = [node.name for node in graphs.direct.nodes if len(node.outputs) > 1]
    assert saved == ["losses"]


def test_the_input_is_never_differentiated() -> None:
    for method in (Full(), Lora(2)):
        graphs = trained(method.apply(zoo.build("cnn-small")).graph)
        assert "grad.x" not in graphs.direct.by_name()


def test_an_update_waits_for_the_gradient_that_still_reads_the_old_weight() -> None:
    nodes = trained(Full().apply(zoo.build("mlp")).graph).direct.nodes
    names = [node.name for node in nodes]
    assert names.index("grad.fc2.weight") < names.index("grad.relu1") < names.index("sgd.fc2.weight")
    assert names[names.index("grad.fc2.bias") + 1] == "sgd.fc2.bias"
    assert names[names.index("grad.fc1.weight") + 1] == "sgd.fc1.weight"


def test_gradients_of_a_residual_sum_are_passed_through_and_added_up() -> None:
    direct = trained(Full().apply(zoo.build("cnn-small")).graph).direct
    by_name = {node.name: node for node in direct.nodes}
    assert by_name["grad.relu2"].op == "add"
    assert by_name["grad.relu2"].inputs == ("grad.block.sum", "grad.relu2.from.block.conv1.0")
    assert by_name["grad.block.relu1"].inputs == ("grad.block.sum", "block.conv2.weight")


def test_a_scaled_sum_scales_the_gradient_of_its_second_input_only() -> None:
    build = Builder("scaled")
    x = build.input((3,))
    total = build.add("total", build.linear("left", x, 2), build.linear("right", x, 2), scale=0.5)
    direct = trained(Full().apply(build.graph(build.linear("logits", total, 2))).graph).direct
    by_name = {node.name: node for node in direct.nodes}
    assert by_name["grad.left.bias"].inputs == ("grad.total",)
    assert by_name["grad.right.bias"].inputs == ("grad.right",)
    assert (by_name["grad.right"].op, by_name["grad.right"].attributes["scale"]) == ("scale", 0.5)


def test_gradients_of_a_shared_weight_are_added_before_its_one_update() -> None:
    build = Builder("shared")
    first = build.linear("layer", build.input((3,)), 3)
    second = build.node("again", "linear", (first, "layer.weight", "layer.bias"))
    graphs = trained(Full().apply(build.graph(build.linear("logits", second, 2))).graph)
    for graph in (graphs.direct, graphs.accumulating):
        check(graph)
        (total,) = [node for node in graph.nodes if node.name == "grad.layer.weight"]
        assert total.op == "add"
        assert total.inputs == ("grad.layer.weight.from.again.1", "grad.layer.weight.from.layer.1")
        assert [node.updates for node in graph.nodes if "layer.weight" in node.updates] == [("layer.weight",)]


def test_velocity_exists_only_with_momentum() -> None:
    graph = Last().apply(zoo.build("mlp")).graph
    assert not [t for t in trained(graph, Sgd()).direct.tensors if t.role is Role.STATE]
    state = [t for t in trained(graph, Sgd(momentum=0.9)).direct.tensors if t.role is Role.STATE]
    assert [(t.name, t.shape, t.init) for t in state] == [
        ("velocity.logits.weight", (10, 32), Init("zeros")),
        ("velocity.logits.bias", (10,), Init("zeros")),
    ]


def test_micro_batches_share_the_divisor_of_the_whole_batch() -> None:
    for graph in trained(Last().apply(zoo.build("mlp")).graph, batch_size=48).all()[:2]:
        (gradient,) = [node for node in graph.nodes if node.op == "cross_entropy_grad"]
        assert gradient.attributes["batch_size"] == 48


def test_accumulating_sums_in_the_body_and_updates_once_at_the_end() -> None:
    graph = trained(Last().apply(zoo.build("mlp")).graph, Sgd(momentum=0.9)).accumulating
    sections = {section: [n.name for n in graph.nodes if n.section is section] for section in Section}
    assert sections[Section.BEGIN] == ["sum.logits.weight", "sum.logits.bias"]
    assert sections[Section.BODY][-2:] == ["grad.logits.weight", "accumulate.logits.weight"]
    assert sections[Section.FINISH] == ["sgd.logits.weight", "sgd.logits.bias"]


def test_evaluation_gives_logits_and_losses_and_saves_nothing() -> None:
    evaluate = trained(Full().apply(zoo.build("cnn-small")).graph).evaluate
    assert evaluate.outputs == ("logits", "losses")
    assert all(len(node.outputs) == 1 for node in evaluate.nodes)
    assert ops(evaluate)[-2:] == ["input", "cross_entropy"]


def test_a_branch_nobody_reads_and_its_frozen_parameters_are_left_out() -> None:
    build = Builder("branch")
    x = build.input((3,))
    build.relu("unread", build.linear("aside", x, 7))
    graphs = trained(Last().apply(build.graph(build.linear("logits", x, 2))).graph)
    for graph in graphs.all():
        assert not {"aside", "unread", "aside.weight", "aside.bias"} & set(graph.by_name())


def branch_that_is_trained() -> Graph:
    build = Builder("branch")
    x = build.input((3,))
    build.linear("aside", x, 7)
    return Full().apply(build.graph(build.linear("logits", x, 2))).graph


def named(name: str) -> Graph:
    build = Builder("named")
    return Full().apply(build.graph(build.linear("logits", build.relu(name, build.input((3,))), 2))).graph


@pytest.mark.parametrize(
    ("graph", "sentence"),
    [
        (zoo.build("mlp"), "Graph 'mlp' has no trainable tensor; apply a method to it first."),
        (train_only(zoo.build("mlp"), ()).graph, "Graph 'mlp' has no trainable tensor; apply a method to it first."),
        (
            branch_that_is_trained(),
            "Trainable tensor 'aside.weight' does not reach 'logits'; freeze it or use it.",
        ),
        (
            replace(named("h"), outputs=("logits", "h")),
            "Graph 'named' has 2 outputs; give it one, the logits.",
        ),
        (named("labels"), "Graph 'named' uses the name 'labels', which training needs; rename it."),
        (named("grad.h"), "Graph 'named' uses the name 'grad.h', which training needs; rename it."),
        (replace(named("h"), nodes=()), "Graph 'named': tensor 'x' is never made; add the node that makes it or drop"),
    ],
)
def test_what_cannot_be_trained_is_refused_with_a_sentence(graph: Graph, sentence: str) -> None:
    with pytest.raises(GraphError) as refusal:
        trained(graph)
    assert str(refusal.value).startswith(sentence)


def test_a_batch_of_nothing_is_refused() -> None:
    with pytest.raises(GraphError, match="cannot train with batch size 0; give it at least 1"):
        trained(Full().apply(zoo.build("mlp")).graph, batch_size=0)


@pytest.mark.parametrize("settings", [{"momentum": 1.0}, {"momentum": -0.1}, {"weight_decay": float("nan")}])
def test_settings_that_diverge_by_design_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(GraphError, match=r"^sgd has .*; give it a"):
        Sgd(**settings)
