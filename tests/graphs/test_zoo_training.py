"""Every network of the zoo can be trained whole: it differentiates, small ones are planned, none is slow to build."""

import time

import pytest

from hedgerow_plans.graph import running_statistics
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Graph, Role
from hedgerow_plans.graph.validate import check
from hedgerow_plans.methods.selection import Full
from hedgerow_plans.models import counting, zoo
from hedgerow_plans.plan import Program
from hedgerow_plans.program import DeviceCosts, ProgramRequest, build_program
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Sgd
from hedgerow_plans.verify import verify

COSTS = DeviceCosts(10**9, 1, 10**6, 10**6, 1, 1)
PLENTY = 2**34
CLASSES = 4

NAMES = {
    *("vgg11", "vgg16", "vgg19", "resnet8", "resnet18", "resnet34", "resnet50", "inceptionv3", "densenet121"),
    *("mobilenetv1", "mobilenetv1-0.25", "mobilenetv2", "mobilenetv2-0.35", "squeezenet", "proxylessnas-mobile"),
    *("proxylessnas-0.3", "mcunet-5fps", "ds-cnn", "ad-autoencoder", "autoencoder", "minilearn-cifar"),
    *("minilearn-har", "minilearn-kws", "bert-base", "bert-small", "encoder-4x256", "mlp", "cnn-small"),
    *("mlp-wide", "cnn-plain", "mobilenetv2-0.35-norms"),
}

SMALL = {
    "resnet8": (3, 16, 16),
    "ds-cnn": (1, 20, 10),
    "mobilenetv1-0.25": (3, 32, 32),
    "ad-autoencoder": (32,),
    "autoencoder": (2, 8),
    "minilearn-cifar": (3, 32, 32),
    "minilearn-har": (9, 3, 1),
    "minilearn-kws": (1, 62, 12),
    "mobilenetv2-0.35": (3, 32, 32),
    "mobilenetv2-0.35-norms": (3, 32, 32),
    "cnn-plain": (3, 16, 16),
    "mlp-wide": (64,),
    "mcunet-5fps": (3, 32, 32),
    "squeezenet": (3, 32, 32),
    "resnet18": (3, 32, 32),
    "vgg11": (3, 32, 32),
    "encoder-4x256": (8,),
}
"""Shapes of samples at which planning takes a moment only."""


def test_the_zoo_has_every_network_that_was_promised() -> None:
    assert set(zoo.names()) == NAMES
    assert [entry.name for entry in zoo.entries()] == sorted(NAMES)


@pytest.mark.parametrize("entry", zoo.entries(), ids=lambda entry: entry.name)
def test_a_model_by_default_reads_its_own_samples_and_ends_in_logits(entry: zoo.Entry) -> None:
    graph = zoo.build(entry.name)
    check(graph)
    tensors = graph.by_name()
    assert tensors["x"].shape == entry.input_shape
    assert graph.outputs == ("logits",)
    assert tensors["logits"].shape == ((entry.classes,) if entry.classifies else entry.input_shape)
    assert {tensor.role for tensor in graph.resident()} == {Role.FROZEN}
    assert graph.name == entry.name
    assert entry.description


@pytest.mark.parametrize("entry", zoo.entries(), ids=lambda entry: entry.name)
def test_all_parameters_of_a_model_can_be_trained(entry: zoo.Entry) -> None:
    graph = zoo.build(entry.name)
    graphs = differentiate(Full().apply(graph).graph, Sgd(0.9), 8, entry.loss)
    for made in graphs.all():
        check(made)
    parameters = {tensor.name for tensor in graph.resident()} - running_statistics.names(graph)
    updated = {name for node in graphs.direct.nodes if node.op == "sgd" for name in node.updates}
    assert parameters <= updated
    assert parameters <= set(graphs.delta)


@pytest.mark.parametrize("name", SMALL)
def test_a_small_model_is_planned_and_the_plans_hold(name: str) -> None:
    classes = CLASSES if zoo.entry(name).classifies else None
    request = ProgramRequest(
        name, Full(), Sgd(0.9), 2, "board", COSTS, PLENTY, PLENTY, classes=classes, input_shape=SMALL[name]
    )
    program = build_program(request, keep_going=lambda: False)  # the first plan that is found will do
    assert isinstance(program, Program)
    for plan in (*program.rungs, program.evaluation):
        placed = (program.resident, program.resident_bytes, program.mapped)
        violations = verify(
            plan, program.graph(plan.graph), resident=placed[0], resident_bytes=placed[1], mapped=placed[2]
        )
        assert not violations


@pytest.mark.parametrize(("name", "limit_seconds"), [("resnet50", 0.5), ("bert-base", 1.0)])
def test_a_large_model_is_built_quickly(name: str, limit_seconds: float) -> None:
    begin = time.perf_counter()
    zoo.build(name)
    assert time.perf_counter() - begin < limit_seconds


def weights(graph: Graph) -> int:
    return counting.count_parameters(graph)


@pytest.mark.parametrize(
    "name", ["vgg11", "resnet18", "resnet50", "squeezenet", "inceptionv3", "mobilenetv2", "ds-cnn"]
)
def test_a_narrower_model_is_smaller_and_still_valid(name: str) -> None:
    whole, half = zoo.build(name), zoo.build(name, width=0.5)
    check(half)
    assert 0.2 * weights(whole) < weights(half) < 0.8 * weights(whole)
    assert half.by_name()["logits"].shape == whole.by_name()["logits"].shape


def test_a_job_may_ask_for_other_samples_and_classes() -> None:
    graph = zoo.build("resnet18", classes=7, input_shape=(1, 64, 48))
    check(graph)
    assert graph.by_name()["conv1.weight"].shape == (64, 1, 7, 7)
    assert graph.by_name()["logits"].shape == (7,)


@pytest.mark.parametrize(
    ("name", "input_shape", "words"),
    [
        ("bert-small", (513,), "cannot read samples of shape [513]; give it one axis of 1 to 512 tokens"),
        ("bert-small", (3, 32, 32), "give it one axis of 1 to 512 tokens"),
        ("resnet18", (224,), "3 axes"),
        ("vgg11", (3, 16, 16), "larger than the image"),
        ("inceptionv3", (3, 60, 60), "larger than"),
        ("minilearn-cifar", (3, 10, 10), "larger than"),
    ],
)
def test_samples_that_a_model_cannot_read_are_refused(name: str, input_shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(GraphError) as refusal:
        zoo.build(name, input_shape=input_shape)
    assert words in str(refusal.value)


def test_a_network_with_two_outputs_says_why_it_cannot_be_trained() -> None:
    with pytest.raises(GraphError, match="has 2 outputs; give it one, the logits"):
        differentiate(Full().apply(zoo.build("inceptionv3", auxiliary=True)).graph, Sgd(), 8)
