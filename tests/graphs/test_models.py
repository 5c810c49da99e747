"""The two smallest models, how models are asked for, and what the zoo says to what it cannot build."""

import copy
import pickle

import pytest

from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Graph, Role
from hedgerow_plans.graph.validate import check
from hedgerow_plans.models import zoo
from hedgerow_plans.models.perceptron import mlp


def parameters(graph: Graph) -> int:
    return sum(tensor.elements for tensor in graph.resident())


@pytest.mark.parametrize("name", ["cnn-small", "mlp"])
@pytest.mark.parametrize("input_shape", [(1, 8, 8), (1, 28, 28), (3, 16, 12)])
@pytest.mark.parametrize("classes", [2, 10])
def test_the_smallest_models_fit_small_images(name: str, input_shape: tuple[int, ...], classes: int) -> None:
    graph = zoo.build(name, classes=classes, input_shape=input_shape)
    check(graph)
    tensors = graph.by_name()
    assert graph.outputs == ("logits",)
    assert tensors["logits"].shape == (classes,)
    assert tensors["x"].shape == input_shape
    assert {tensor.role for tensor in graph.resident()} == {Role.FROZEN}


def test_number_of_parameters() -> None:
    dense = (64 * 64 + 64) + (64 * 32 + 32) + (32 * 10 + 10)
    assert parameters(zoo.build("mlp")) == dense
    convolutions = (8 * 9 + 8) + (16 * 8 * 9 + 16) + 2 * (16 * 16 * 9 + 16)
    assert parameters(zoo.build("cnn-small")) == convolutions + (16 * 2 * 2 * 10 + 10)
    assert parameters(zoo.build("cnn-small", input_shape=(1, 28, 28))) == convolutions + (16 * 7 * 7 * 10 + 10)


def test_a_perceptron_without_hidden_layers_is_one_linear_layer() -> None:
    assert [node.op for node in mlp(3, (5,), hidden=()).nodes] == ["input", "linear"]


def test_the_small_network_has_a_residual_sum() -> None:
    sums = [node for node in zoo.build("cnn-small").nodes if node.op == "add"]
    assert [node.inputs for node in sums] == [("relu2", "block.conv2")]


def test_weights_start_with_the_variance_that_rectifiers_keep_and_biases_at_zero() -> None:
    tensors = zoo.build("mlp").by_name()
    weight, bias = tensors["fc1.weight"].init, tensors["fc1.bias"].init
    assert weight is not None
    assert bias is not None
    assert weight.kind == "normal"
    assert weight.scale == pytest.approx((2 / 64) ** 0.5)
    assert bias.kind == "zeros"


@pytest.mark.parametrize("name", zoo.names())
def test_a_model_survives_the_way_to_another_process(name: str) -> None:
    graph = zoo.build(name)
    assert pickle.loads(pickle.dumps(graph)) == graph
    assert copy.deepcopy(graph) == graph


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    for ask in (zoo.build, zoo.entry):
        with pytest.raises(zoo.UnknownModelError) as refusal:
            ask("resnet-9000")
        known = ", ".join(zoo.names())
        assert str(refusal.value) == f"There is no model 'resnet-9000' in the zoo; known are {known}."


def test_an_unknown_setting_is_refused_with_the_known_ones() -> None:
    with pytest.raises(GraphError) as refusal:
        zoo.build("mlp", depth=3)
    assert str(refusal.value) == "Model 'mlp' has no setting 'depth'; known are hidden."
    with pytest.raises(GraphError, match=r"Model 'ad-autoencoder' has no setting 'hidden'; known are none."):
        zoo.build("ad-autoencoder", hidden=(3,))


def test_the_widths_of_a_perceptron_are_a_setting() -> None:
    graph = zoo.build("mlp", 10, (784,), hidden=(512, 256))
    weights = [tensor.shape for tensor in graph.resident() if tensor.name.endswith(".weight")]
    assert weights == [(512, 784), (256, 512), (10, 256)]


@pytest.mark.parametrize(
    ("name", "classes", "input_shape", "words"),
    [
        ("mlp", 1, (1, 8, 8), "cannot tell 1 classes apart"),
        ("mlp", 10, (1, 8, 0), "attribute 'shape' is (1, 8, 0)"),
        ("cnn-small", 10, (64,), "3 axes"),
        ("cnn-small", 10, (1, 2, 2), "is larger than the image [16, 1, 1]"),
        ("mlp", 2**40, (4,), "dimensions"),
    ],
)
def test_a_model_that_cannot_be_built_says_why(
    name: str, classes: int, input_shape: tuple[int, ...], words: str
) -> None:
    with pytest.raises(GraphError) as refusal:
        check(zoo.build(name, classes=classes, input_shape=input_shape))
    assert words in str(refusal.value)
