"""What tuning does to graphs: fewer nodes' work, orders that fit together, and nothing at all for small budgets."""

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

import pytest

from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Graph, Node, Order, Tensor
from hedgerow_plans.graph.ops.convolution_ways import Way
from hedgerow_plans.graph.validate import check
from hedgerow_plans.methods.catalogue import Method
from hedgerow_plans.methods.selection import Bias, Full, Last
from hedgerow_plans.models import zoo
from hedgerow_plans.training.graphs import TrainingGraphs, differentiate
from hedgerow_plans.training.optimizers import Adam, Optimizer, Sgd
from hedgerow_plans.tuning import LEAST_BUDGET_BYTES, tuned

BATCH = 8
LARGE = 1 << 30
FULL = Full()


def resnet() -> TrainingGraphs:
    return differentiate(Full().apply(zoo.build("resnet18", 10, (3, 64, 64))).graph, Sgd(), BATCH)


def ways(graph: Graph) -> Counter[str]:
    return Counter(str(node.attributes["algorithm"]) for node in graph.nodes if node.op == "conv2d")


def test_a_small_budget_leaves_every_graph_alone() -> None:
    graphs = differentiate(Full().apply(zoo.build("cnn-small")).graph, Sgd(), BATCH)
    assert tuned(graphs, LEAST_BUDGET_BYTES - 1, BATCH) == graphs
    assert tuned(graphs, LEAST_BUDGET_BYTES, BATCH) != graphs


def perceptron(optimizer: Optimizer, outside: Collection[str] = (), method: Method = FULL) -> TrainingGraphs:
    fast = tuned(differentiate(method.apply(zoo.build("mlp")).graph, optimizer, BATCH), LARGE, BATCH, outside)
    for graph in fast.all():
        check(graph)
    return fast


def by_inputs(graphs: TrainingGraphs) -> set[str]:
    """Return what lies by inputs, when all else lies as its shape says and nothing is copied."""
    tensors = [tensor for graph in graphs.all() for tensor in graph.tensors]
    assert {tensor.order for tensor in tensors} <= {Order.SAMPLES, Order.INPUTS}
    assert not [tensor.name for tensor in tensors if tensor.name.startswith("reordered.")]
    return {tensor.name for tensor in tensors if tensor.order is Order.INPUTS}


def test_of_a_network_without_images_only_the_first_weight_lies_otherwise_than_its_shape_says() -> None:
    fast = perceptron(Sgd())
    assert by_inputs(fast) == {"fc1.weight", "grad.fc1.weight", "sum.fc1.weight"}
    assert not [name for name in fast.direct.by_name() if name.startswith("mask.")]


def test_a_weight_by_inputs_takes_its_gradient_and_the_optimisers_state_along() -> None:
    fast = perceptron(Adam())
    states = {tensor.name for tensor in fast.direct.resident() if tensor.name.startswith("moment")}
    assert {name for name in states if name.endswith("fc1.weight")} < by_inputs(fast)


def test_a_weight_that_gradients_of_inputs_read_too_lies_by_outputs() -> None:
    assert "fc2.weight" not in by_inputs(perceptron(Sgd()))
    # with the last layer alone, nothing goes back through any
    assert {"fc1.weight", "fc2.weight", "logits.weight"} <= by_inputs(perceptron(Sgd(), method=Last()))


def test_a_weight_outside_the_arena_is_read_as_it_lies_there() -> None:
    assert by_inputs(perceptron(Sgd(), ("fc1.weight",), Bias())) == set()


def test_layers_are_computed_as_their_images_ask() -> None:
    fast = tuned(resnet(), LARGE, BATCH)
    # the stem and the first layer of the second stage; the third and fourth stage and three shortcuts; the others
    assert ways(fast.direct) == {Way.UNFOLD: 2, Way.TAPS: 11, Way.WINOGRAD: 7}
    assert ways(fast.evaluate) == ways(fast.direct)


def test_scratch_that_would_take_too_much_of_the_budget_is_not_spent() -> None:
    assert Way.WINOGRAD not in ways(tuned(resnet(), LEAST_BUDGET_BYTES, BATCH).direct)


def test_a_network_of_separable_layers_lies_by_pixels() -> None:
    graph = Full().apply(zoo.build("mobilenetv2", 10, (3, 96, 96), width=0.35)).graph
    fast = tuned(differentiate(graph, Sgd(), BATCH), LARGE, BATCH)
    assert ways(fast.direct)[Way.DEPTHWISE] == 17
    assert not [node for node in fast.direct.nodes if node.op == "reorder"]


def test_rectifiers_come_after_pooling_and_need_no_mask_where_their_result_is_kept() -> None:
    graphs = differentiate(Full().apply(zoo.build("cnn-small")).graph, Sgd(), BATCH)
    before, after = graphs.direct, tuned(graphs, LARGE, BATCH).direct
    made = {name: node for node in after.nodes for name in node.outputs}
    assert (made["relu1"].op, made["pool1"].op) == ("max_pool2d", "relu")
    assert after.by_name()["relu1"].shape == before.by_name()["pool1"].shape
    assert "mask.relu1" in before.by_name()
    assert "mask.relu1" not in after.by_name()
    # nothing after the last rectifier keeps its result: the mask is smaller
    assert "mask.block.relu2" in after.by_name()


def test_masks_stay_where_no_weight_is_trained() -> None:
    graphs = differentiate(Bias().apply(zoo.build("cnn-small")).graph, Sgd(), BATCH)
    names = tuned(graphs, LARGE, BATCH).direct.by_name()
    assert {"mask.relu1", "mask.relu2", "mask.block.relu1"} <= names.keys()


def test_norms_are_given_the_sums_that_their_parameters_need_anyway() -> None:
    fast = tuned(resnet(), LARGE, BATCH).direct
    gradients = [node for node in fast.nodes if node.op == "batch_norm_grad_input"]
    assert len(gradients) == 20
    assert all(len(node.inputs) == 6 for node in gradients)


def test_weights_outside_the_arena_are_copied_to_the_order_they_are_read_in() -> None:
    graphs = differentiate(Bias().apply(zoo.build("resnet18", 10, (3, 64, 64))).graph, Sgd(), BATCH)
    inside, outside = (tuned(graphs, LARGE, BATCH, names) for names in ((), ("layer1.0.conv1.weight",)))
    for fast, order in ((inside, Order.TAPS), (outside, Order.SAMPLES)):
        check(fast.direct)
        assert fast.direct.by_name()["layer1.0.conv1.weight"].order is order
    assert outside.direct.by_name()["reordered.taps.layer1.0.conv1.weight"].order is Order.TAPS


def test_operators_that_know_one_order_get_copies() -> None:
    build = Builder("net")
    x = build.conv2d("conv", build.input((3, 8, 8)), 4)
    x = build.upsample_bilinear("larger", x, (12, 12))
    graph = build.graph(build.linear("logits", build.global_avg_pool("mean", build.conv2d("last", x, 4)), 2))
    fast = tuned(differentiate(Full().apply(graph).graph, Sgd(), BATCH), LARGE, BATCH)
    for tuned_graph in fast.all():
        check(tuned_graph)
    copies = {node.outputs[0] for node in fast.direct.nodes if node.op == "reorder"}
    wanted = {
        "reordered.samples.conv",
        "reordered.channels.larger",
        "reordered.samples.grad.larger",
        "reordered.channels.grad.conv",
    }
    assert copies == wanted


IMAGE = Tensor("x", (2, 4, 4))


@pytest.mark.parametrize(
    ("tensor", "sentence"),
    [
        (replace(IMAGE, order=Order.TAPS), "lies in the order of taps; only a weight of 4 axes can"),
        (Tensor("x", (2, 4), order=Order.PIXELS), "lies in the order of pixels; only images of 4 axes can"),
    ],
)
def test_an_order_that_a_tensor_cannot_lie_in_is_refused(tensor: Tensor, sentence: str) -> None:
    node = Node("x", "input", (), ("x",), attributes={"field": "x", "shape": tensor.shape})
    with pytest.raises(GraphError, match=sentence):
        check(Graph("net", (tensor,), (node,), ("x",)))


@pytest.mark.parametrize(
    ("op", "order", "sentence"),
    [
        ("silu", Order.PIXELS, "'x' lies in the order of pixels, which it cannot work with; reorder it"),
        ("relu", Order.SAMPLES, "'x' lies in the order of pixels and 'y' of samples; reorder one of them"),
    ],
)
def test_a_node_whose_tensors_do_not_lie_as_it_needs_is_refused(op: str, order: Order, sentence: str) -> None:
    x, y = replace(IMAGE, order=Order.PIXELS), replace(IMAGE, name="y", order=order)
    nodes = (
        Node("x", "input", (), ("x",), attributes={"field": "x", "shape": x.shape}),
        Node("y", op, ("x",), ("y",)),
    )
    with pytest.raises(GraphError, match=sentence):
        check(Graph("net", (x, y), nodes, ("y",)))


def test_winograds_way_is_refused_for_other_windows() -> None:
    x, y = (replace(IMAGE, name=name, order=Order.PIXELS) for name in "xy")
    weight = Tensor("w", (2, 2, 1, 1), batched=False, role=zoo.build("mlp").resident()[0].role)
    nodes = (
        Node("x", "input", (), ("x",), attributes={"field": "x", "shape": x.shape}),
        Node("y", "conv2d", ("x", "w"), ("y",), attributes={"algorithm": "winograd"}),
    )
    with pytest.raises(GraphError, match="Winograd's way needs a 3x3 window"):
        check(Graph("net", (x, weight, y), nodes, ("y",)))
