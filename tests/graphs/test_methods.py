"""What each method trains, what it leaves alone, and when it says that it cannot."""

import math

import pytest

from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.ir import Graph, Init, Role
from hedgerow_plans.methods.adapted import MethodError
from hedgerow_plans.methods.catalogue import Full, Last, Lora, Method
from hedgerow_plans.models import zoo


def without_linear_layers() -> Graph:
    build = Builder("pooled")
    return build.graph(build.max_pool2d("logits", build.input((2, 2, 2))))


def test_full_trains_everything() -> None:
    model = zoo.build("cnn-small")
    adapted = Full().apply(model)
    assert adapted.delta == tuple(tensor.name for tensor in model.resident())
    assert {tensor.role for tensor in adapted.graph.resident()} == {Role.TRAINABLE}
    assert adapted.graph.nodes == model.nodes


def test_last_trains_the_last_linear_layer_only() -> None:
    adapted = Last().apply(zoo.build("mlp"))
    assert adapted.delta == ("logits.weight", "logits.bias")
    roles = {tensor.name: tensor.role for tensor in adapted.graph.resident()}
    assert roles["fc2.weight"] is Role.FROZEN


def test_lora_trains_two_narrow_weights_per_layer_and_no_base_parameter() -> None:
    adapted = Lora(rank=4).apply(zoo.build("cnn-small"))
    shapes = {name: adapted.graph.by_name()[name].shape for name in adapted.delta}
    assert shapes["conv2.weight.lora_down"] == (4, 8, 3, 3)
    assert shapes["conv2.weight.lora_up"] == (16, 4, 1, 1)
    assert shapes["logits.weight.lora_down"] == (4, 64)
    assert shapes["logits.weight.lora_up"] == (10, 4)
    assert len(shapes) == 2 * 5
    assert all(".lora_" in name for name in adapted.delta)


def test_lora_starts_from_the_base_model_because_up_is_zero() -> None:
    tensors = Lora(rank=4).apply(zoo.build("mlp")).graph.by_name()
    assert tensors["fc1.weight.lora_up"].init == Init("zeros")
    assert tensors["fc1.weight.lora_down"].init == Init("normal", 1 / 8)


def test_lora_keeps_the_names_that_others_read() -> None:
    model = zoo.build("mlp")
    adapted = Lora(rank=2).apply(model)
    assert adapted.graph.outputs == ("logits",)
    assert {tensor.name for tensor in model.tensors} <= set(adapted.graph.by_name())
    (sum_node,) = [node for node in adapted.graph.nodes if node.outputs == ("logits",)]
    assert (sum_node.op, sum_node.inputs) == ("add", ("logits.base", "logits.lora_up"))


def test_alpha_over_rank_scales_the_narrow_tensor_and_costs_nothing_when_it_is_one() -> None:
    def scales(method: Lora) -> list[object]:
        graph = method.apply(zoo.build("mlp")).graph
        return [node.attributes["scale"] for node in graph.nodes if node.op == "scale"]

    assert scales(Lora(rank=4, alpha=8.0)) == [2.0, 2.0, 2.0]
    assert scales(Lora(rank=4, alpha=4.0)) == scales(Lora(rank=4)) == []


def test_the_rank_never_exceeds_what_a_layer_can_express() -> None:
    tensors = Lora(rank=100).apply(zoo.build("cnn-small")).graph.by_name()
    assert tensors["conv1.weight.lora_down"].shape == (8, 1, 3, 3)
    assert tensors["logits.weight.lora_up"].shape == (10, 10)


def test_a_grouped_convolution_gets_a_detour_in_each_group() -> None:
    build = Builder("grouped")
    hidden = build.conv2d("conv", build.input((4, 5, 5)), 6, stride=2, groups=2)
    adapted = Lora(rank=2).apply(build.graph(build.linear("logits", build.flatten("flat", hidden), 3)))
    tensors = adapted.graph.by_name()
    assert tensors["conv.weight.lora_down"].shape == (4, 2, 3, 3)
    assert tensors["conv.weight.lora_up"].shape == (6, 2, 1, 1)
    assert tensors["conv.lora_down"].shape == (4, 3, 3)
    assert tensors["conv.lora_up"].shape == tensors["conv"].shape == (6, 3, 3)


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (Full(), "Method full cannot train 'pooled': it has no parameters; choose another model."),
        (Last(), "Method last cannot train 'pooled': it has no linear or conv2d layer; choose another model."),
        (Lora(4), "Method lora cannot train 'pooled': it has no linear or conv2d layer; choose full."),
        (Lora(0), "Method lora has rank 0; give it a rank of at least 1."),
        (Lora(4, math.nan), "Method lora has alpha nan; give it a finite number above 0."),
    ],
)
def test_a_method_that_cannot_says_so(method: Method, sentence: str) -> None:
    with pytest.raises(MethodError) as refusal:
        method.apply(without_linear_layers())
    assert str(refusal.value) == sentence


def test_lora_on_top_of_lora_is_refused() -> None:
    once = Lora(2).apply(zoo.build("mlp")).graph
    with pytest.raises(MethodError, match="'mlp': it already has adapters; apply lora to the base model"):
        Lora(2).apply(once)


def test_a_name_that_lora_needs_is_refused_when_the_model_uses_it() -> None:
    build = Builder("taken")
    hidden = build.relu("logits.base", build.input((3,)))
    model = build.graph(build.linear("logits", hidden, 2))
    with pytest.raises(MethodError, match=r"it already has a tensor called 'logits\.base'; rename it"):
        Lora(2).apply(model)
