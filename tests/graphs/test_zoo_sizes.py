"""How large the networks of the zoo are, against what their authors and the libraries that ship them publish."""

import json
from typing import Any

import pytest

from hedgerow_plans.graph import running_statistics
from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.ir import Graph, Node
from hedgerow_plans.models import counting, zoo
from support.repository import ROOT

PARAMETERS = {
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "vgg11": 132_863_336,
    "vgg16": 138_357_544,
    "vgg19": 143_667_240,
    "densenet121": 7_978_856,
    "inceptionv3": 23_834_568,  # without the auxiliary classifier
    "mobilenetv1": 4_231_976,
    "mobilenetv2": 3_504_872,
    "squeezenet": 1_248_424,
    "proxylessnas-mobile": 4_080_512,
    "bert-base": 109_482_240,  # with embeddings and pooler, without a classifier
    "bert-small": 28_763_648,
    "mobilenetv2-0.35": 244_448,  # TTE's three without a classifier
    "proxylessnas-0.3": 326_232,
    "mcunet-5fps": 469_224,
    "mlp-wide": 784 * 512 + 512 + 512 * 256 + 256 + 256 * 10 + 10,
    "cnn-plain": (3 * 16 + 16 * 32 + 32 * 64) * 9 + (16 + 32 + 64) + 64 * 10 + 10,
    "mobilenetv2-0.35-norms": 408_938,  # for ten classes
    "encoder-4x256": 8192 * 256 + 64 * 256 + 512 + 4 * (12 * 256 * 256 + 13 * 256) + 256 * 256 + 256,
}

TOTALS_WITH_STATISTICS = {"resnet8": 78_666, "ds-cnn": 24_908, "mobilenetv1-0.25": 221_794, "ad-autoencoder": 269_992}
"""MLPerf Tiny's networks with their running statistics, which Keras counts among the parameters."""

MACS = {
    "ad-autoencoder": 264_192,
    "resnet8": 12_501_632,
    "ds-cnn": 2_656_768,
    "mobilenetv1-0.25": 7_489_664,
}

GIGAMACS = {
    "resnet18": 1.814,
    "resnet34": 3.664,
    "resnet50": 4.089,
    "vgg11": 7.609,
    "vgg16": 15.470,
    "vgg19": 19.632,
    "densenet121": 2.834,
    "inceptionv3": 5.713,
    "mobilenetv2": 0.301,
    "squeezenet": 0.819,
}
"""What torchvision publishes with its weights as GFLOPS, rounded as it does."""

TTE_MEGAMACS = {"mobilenetv2-0.35": 16.65, "mcunet-5fps": 22.45, "proxylessnas-0.3": 18.62}
TTE_CONVOLUTIONS = {"mobilenetv2-0.35": 51, "mcunet-5fps": 42, "proxylessnas-0.3": 60}
TTE_NAMES = {"mobilenetv2-0.35": "mbv2-w0.35", "mcunet-5fps": "mcunet-5fps", "proxylessnas-0.3": "proxyless-w0.3"}
TTE_LAYERS = ROOT.parent / "shared" / "data" / "tte_models.json"
"""The layers as TTE's release lists them, where somebody has put them beside the repository."""


@pytest.mark.parametrize(("name", "parameters"), PARAMETERS.items())
def test_parameters_are_those_of_the_publication(name: str, parameters: int) -> None:
    assert zoo.published_size(name).parameters == parameters


@pytest.mark.parametrize(("name", "total"), TOTALS_WITH_STATISTICS.items())
def test_running_statistics_are_all_that_keras_would_count_besides(name: str, total: int) -> None:
    graph = zoo.build(name)
    tensors = graph.by_name()
    statistics = sum(tensors[statistic].elements for statistic in running_statistics.names(graph))
    assert statistics > 0
    assert counting.count_parameters(graph) + statistics == total


@pytest.mark.parametrize(("name", "macs"), MACS.items())
def test_multiply_accumulates_are_those_of_mlperf_tiny(name: str, macs: int) -> None:
    assert zoo.published_size(name).macs == macs


@pytest.mark.parametrize(("name", "gigamacs"), GIGAMACS.items())
def test_multiply_accumulates_are_those_of_torchvision(name: str, gigamacs: float) -> None:
    assert round(zoo.published_size(name).macs / 1e9, 3) == gigamacs


def test_the_auxiliary_classifier_of_inception_is_a_setting() -> None:
    graph = zoo.build("inceptionv3", auxiliary=True)
    assert counting.count_parameters(graph) == 27_161_264
    assert graph.outputs == ("logits", "AuxLogits.fc")


def convolutions(graph: Graph) -> list[dict[str, Any]]:
    """Return the convolutions of a graph in the form of TTE's list, without their roles."""
    tensors = graph.by_name()

    def row(node: Node) -> dict[str, Any]:
        outputs, _, kernel, _ = tensors[node.inputs[1]].shape
        strides = {name: node.attributes[name] for name in ("stride", "groups")}
        return {"in": tensors[node.inputs[0]].shape[0], "out": outputs, "kernel": kernel, **strides}

    return [row(node) for node in graph.nodes if node.op == "conv2d"]


def published_layers(name: str) -> list[dict[str, Any]] | None:
    if not TTE_LAYERS.exists():
        return None
    listed = json.loads(TTE_LAYERS.read_text(encoding="utf-8"))["models"][TTE_NAMES[name]]["convs"]
    return [{key: value for key, value in layer.items() if key != "role"} for layer in listed]


@pytest.mark.parametrize("name", TTE_NAMES)
def test_tte_networks_have_the_layers_of_the_release(name: str) -> None:
    graph = zoo.build(name)
    found = convolutions(graph)
    assert len(found) == TTE_CONVOLUTIONS[name]
    assert round(zoo.published_size(name).macs / 1e6, 2) == TTE_MEGAMACS[name]
    assert all(len(node.inputs) == 3 for node in graph.nodes if node.op == "conv2d"), "norms are folded into biases"
    published = published_layers(name)
    if published is not None:
        assert found == published


def test_residual_sums_of_tte_networks_are_where_the_shape_stays() -> None:
    sums = {name: sum(node.op == "add" for node in zoo.build(name).nodes) for name in TTE_NAMES}
    assert sums == {"mobilenetv2-0.35": 10, "mcunet-5fps": 7, "proxylessnas-0.3": 13}


def test_products_of_matrices_count_whichever_side_is_turned() -> None:
    build = Builder("products")
    x = build.input((3, 5))
    build.matmul("plain", x, x, transpose_second=True)  # 3x5 times 5x3
    assert counting.count_macs(build.graph("plain")) == 3 * 3 * 5
    build.matmul("turned", x, x, transpose_first=True)  # 5x3 times 3x5
    assert counting.count_macs(build.graph("turned")) == 3 * 3 * 5 + 5 * 5 * 3


def test_attention_costs_two_products_of_sequence_by_sequence() -> None:
    base, width, tokens = zoo.published_size("bert-base"), 768, 128
    layer = tokens * (4 * width * width + 8 * width * width) + 2 * tokens * tokens * width
    assert base.macs == 12 * layer + width * width  # the pooler reads one token


def test_the_last_layer_is_counted_apart() -> None:
    graph = zoo.build("mcunet-5fps", classes=7)
    assert counting.head_size(graph) == counting.Size(160 * 7 + 7, 160 * 7)
    assert counting.size(graph) - counting.head_size(graph) == zoo.published_size("mcunet-5fps")
    assert counting.head_size(zoo.build("squeezenet")) == counting.Size(0, 0)  # averages a convolution
