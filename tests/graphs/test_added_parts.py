"""Methods that add parameters: where, which, how many; and that all of them start from the base model's outputs."""

import numpy as np
import pytest

from hedgerow_agent.core.initial import initial_value, kept_value
from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph.ir import Graph, Role
from hedgerow_plans.graph.validate import problems
from hedgerow_plans.methods.adapted import MethodError
from hedgerow_plans.methods.blocks import Block, blocks
from hedgerow_plans.methods.catalogue import (
    Adapter,
    Bias,
    Full,
    Last,
    LayerShare,
    LiteResidual,
    Lora,
    Method,
    MiniLearn,
    NormLast,
    Sparse,
    TinyOl,
)
from hedgerow_plans.models import zoo
from support.kernel_calls import Laboratory
from support.small_models import MODELS, arrays_for

BATCH = 3

NEUTRAL: list[tuple[str, Method]] = [
    *((model, method) for model in MODELS for method in (Lora(2, 5.0), Adapter(4))),
    *((model, method) for model in ("cnn", "inverted") for method in (LiteResidual(), LiteResidual(biases=False))),
    ("cnn", Sparse(1, (LayerShare("conv1", 4), LayerShare("conv2", 4), LayerShare("fc", 3)))),
    ("inverted", Sparse(0, (LayerShare("block0.depthwise", 2), LayerShare("block1.project", 1)))),
    ("transformer", Sparse(0, (LayerShare("feed.up", 2),))),
]


def logits(graph: Graph, arrays: dict[str, Array]) -> Array:
    return Laboratory(BATCH).run_graph(graph, dict(arrays))[graph.outputs[0]]


@pytest.mark.parametrize(("model", "method"), NEUTRAL, ids=str)
def test_what_is_added_changes_no_output_at_first(model: str, method: Method) -> None:
    base = MODELS[model]()
    adapted = method.apply(base)
    assert list(problems(adapted.graph)) == []
    arrays = arrays_for(base, BATCH, seed=3)
    added = [tensor for tensor in adapted.graph.resident() if tensor.name not in base.by_name()]
    assert added
    first: dict[str, Array] = {tensor.name: initial_value(tensor, 1).astype(np.float64) for tensor in added}
    assert np.allclose(logits(base, arrays), logits(adapted.graph, {**arrays, **first}), rtol=0, atol=1e-12)
    assert any(np.any(value) for value in first.values()) or isinstance(method, Sparse)


@pytest.mark.parametrize(
    "method",
    [Full(), Last(), Bias(), Lora(2), Adapter(4), LiteResidual(), LiteResidual(False), Sparse(2), TinyOl(True)],
    ids=str,
)
@pytest.mark.parametrize("model", ["cnn-small", "resnet8", "mobilenetv2-0.35", "ds-cnn"])
def test_parameters_of_the_model_keep_their_names_and_only_the_delta_trains(model: str, method: Method) -> None:
    base = zoo.build(model)
    adapted = method.apply(base)
    assert list(problems(adapted.graph)) == []
    kept = {tensor.name: tensor.shape for tensor in adapted.graph.resident()}
    assert {tensor.name: tensor.shape for tensor in base.resident()}.items() <= kept.items()
    trained = [tensor.name for tensor in adapted.graph.tensors if tensor.role is Role.TRAINABLE]
    assert tuple(trained) == adapted.delta
    assert adapted.graph.outputs == base.outputs


def elements(graph: Graph, names: tuple[str, ...]) -> int:
    tensors = graph.by_name()
    return sum(tensors[name].elements for name in names)


@pytest.mark.parametrize(
    ("method", "megabytes"),
    [(LiteResidual(biases=False), 10.587824), (LiteResidual(), 10.633520)],
    ids=["TinyTL-L", "TinyTL-L+B"],
)
def test_lite_residuals_come_to_the_published_model_sizes(method: LiteResidual, megabytes: float) -> None:
    """Four bytes for each trained number and one for each frozen one; batch norms as group norms, which have none."""
    base = zoo.build("proxylessnas-mobile", classes=102)
    adapted = method.apply(base)
    statistics = sum(t.elements for t in base.resident() if "running_" in t.name)
    trained = elements(adapted.graph, adapted.delta)
    frozen = sum(tensor.elements for tensor in adapted.graph.resident()) - statistics - trained
    assert (4 * trained + frozen) / 1e6 == megabytes


def test_blocks_are_found_by_their_structure() -> None:
    assert blocks(MODELS["inverted"]()) == (Block("stem.relu", "block0.bn3"), Block("block0.sum", "block1.bn3"))
    assert blocks(zoo.build("cnn-small")) == (Block("relu2", "block.sum"),)
    assert [block.source for block in blocks(MODELS["cnn"]())] == ["x", "pool"]
    assert blocks(MODELS["transformer"]()) == ()
    assert len(blocks(zoo.build("proxylessnas-mobile"))) == 20 - 1  # the first one expands nothing


def test_adapters_go_behind_the_branch_of_each_sum() -> None:
    adapted = Adapter(4).apply(MODELS["transformer"]())
    behind = [name.removesuffix(".adapter_up.weight") for name in adapted.delta if name.endswith("adapter_up.weight")]
    assert behind == ["attention.output", "feed.down"]
    assert {"logits.weight", "logits.bias"} <= set(adapted.delta)
    plain = Adapter(2).apply(zoo.build("mlp"))
    assert [name for name in plain.delta if name.endswith("adapter_down.weight")] == [
        "fc1.adapter_down.weight",
        "fc2.adapter_down.weight",
    ]


def test_biases_include_the_shift_of_norms_and_norms_their_scale() -> None:
    model = MODELS["cnn"]()
    assert set(Bias().apply(model).delta) == {
        *("conv1.bias", "bn1.bias", "conv2.bias", "bn2.bias", "fc.bias", "logits.bias")
    }
    norms = NormLast().apply(model)
    assert set(norms.delta) == {*("bn1.weight", "bn1.bias", "bn2.weight", "bn2.bias"), "logits.weight", "logits.bias"}


def test_lora_targets_choose_layers_by_name() -> None:
    delta = Lora(2, targets=("attention.q*", "feed.up")).apply(MODELS["transformer"]()).delta
    assert {name.rsplit(".", 1)[0] for name in delta} == {"attention.query.weight", "feed.up.weight"}


def test_sparse_update_trains_the_last_biases_and_a_share_of_channels() -> None:
    adapted = Sparse(2, (LayerShare("block1.expand", 3), LayerShare("block0.depthwise", 4))).apply(MODELS["inverted"]())
    tensors = adapted.graph.by_name()
    assert set(adapted.delta) == {
        *("logits.weight", "logits.bias", "block1.depthwise.bias", "block1.project.bias"),
        *("block1.expand.weight.part", "block0.depthwise.weight.part"),
    }
    assert tensors["block1.expand.weight.part"].shape == (16, 3, 1, 1)
    assert tensors["block0.depthwise.weight.part"].shape == (8, 1, 3, 3)
    assert tensors["block1.expand.channels"].shape == (3, 9, 9)
    whole = Sparse(0, (LayerShare("block1.expand"),)).apply(MODELS["inverted"]())
    assert whole.delta == ("block1.expand.weight", "logits.weight", "logits.bias")


def test_minilearn_keeps_filters_and_narrows_what_reads_them() -> None:
    adapted = MiniLearn(5, "conv3").apply(zoo.build("minilearn-cifar"))
    shapes = {tensor.name: tensor.shape for tensor in adapted.graph.resident()}
    base = {tensor.name: tensor.shape for tensor in zoo.build("minilearn-cifar").resident()}
    assert shapes["conv3.weight.kept"] == (5, *base["conv3.weight"][1:])
    assert "conv3.weight" not in shapes
    narrowed = [name for name in shapes if name.endswith(".kept") and "conv3" not in name]
    (name,) = narrowed
    whole = base[name.removesuffix(".kept")]
    assert shapes[name] == (whole[0], whole[1] // base["conv3.weight"][0] * 5)
    assert set(adapted.delta) >= {"conv3.weight.kept", "conv3.bias.kept", name}


def test_a_device_keeps_the_strongest_filters_in_their_order() -> None:
    base = MODELS["inverted"]()
    adapted = MiniLearn(3).apply(base)
    weights: dict[str, Array] = {
        tensor.name: np.ones(tensor.shape, np.float32) for tensor in base.resident() if "project" in tensor.name
    }
    strengths = np.array([1, 9, 2, 8, 3, 7, 4, 5], np.float32)
    signs = np.where(np.arange(16) % 2, 1, -1).astype(np.float32)[:, None, None]
    weights["block1.project.weight"] *= strengths[:, None, None, None] * signs
    weights["logits.weight"] = np.arange(24, dtype=np.float32).reshape(3, 8)
    tensors = adapted.graph.by_name()
    kept = tensors["block1.project.weight.kept"]
    assert kept.init is not None
    assert np.array_equal(kept_value(kept, kept.init, weights), weights["block1.project.weight"][[1, 3, 5]])
    head = tensors["logits.weight.kept"]
    assert head.init is not None
    assert np.array_equal(kept_value(head, head.init, weights), weights["logits.weight"][:, [1, 3, 5]])


def test_tinyol_trains_one_layer_and_its_statistics() -> None:
    replaced = TinyOl().apply(zoo.build("cnn-small"))
    assert set(replaced.delta) == {f"tinyol.{part}" for part in ("weight", "bias", "mean", "variance", "samples")}
    assert "logits.weight" not in replaced.graph.by_name()
    tensors = TinyOl(on_top=True).apply(zoo.build("cnn-small")).graph.by_name()
    assert tensors["tinyol.weight"].shape == (10, 10)
    assert "logits.weight" in tensors


@pytest.mark.parametrize(
    ("model", "method", "sentence"),
    [
        ("mlp", NormLast(), "Method norm-last cannot train 'mlp': it has no norm; choose last or bias."),
        ("mlp", LiteResidual(), "Method lite-residual cannot train 'mlp': it has no convolutions of images; choose"),
        ("mlp", LiteResidual(False, False), "Method lite-residual trains neither residuals nor biases; choose one"),
        ("mlp", Adapter(0), "Method adapter has width 0; give it a width of at least 1."),
        ("mlp", Lora(2, targets=("conv*",)), "no linear or conv2d layer is called 'conv*'; its layers are fc1, fc2"),
        ("mlp", Sparse(9), "it has 2 biases before its last layer and 9 are to be trained; lower the number."),
        ("mlp", Sparse(-1), "Method sparse trains -1 biases; give it a number of at least 0."),
        ("mlp", Sparse(0, (LayerShare("fc9"),)), "it has no linear or conv2d layer 'fc9'; its layers are fc1, fc2"),
        ("mlp", Sparse(0, (LayerShare("fc1", 9),)), "Method sparse trains 9 eighths of 'fc1'; give it 1 to 8."),
        ("mlp", Sparse(0, (LayerShare("fc1"),) * 2), "Method sparse names the layer 'fc1' twice; name it once."),
        ("mlp", MiniLearn(3), "it has no conv2d layer before its last layer; choose another method."),
        ("cnn-small", MiniLearn(3), "the filters of 'block.conv2' reach node 'block.sum' (add), which needs all of"),
        ("cnn-small", MiniLearn(99, "conv1"), "layer 'conv1' has 8 filters, fewer than 99; keep fewer."),
        ("cnn-small", MiniLearn(0), "Method minilearn keeps 0 filters; keep at least 1."),
        ("cnn-small", MiniLearn(2, "conv7"), "it has no conv2d layer 'conv7' before its last layer; name one of conv1"),
        ("squeezenet", TinyOl(), "it does not end in a linear layer; put the new one on top of it."),
    ],
)
def test_a_method_that_cannot_says_so(model: str, method: Method, sentence: str) -> None:
    with pytest.raises(MethodError) as refusal:
        method.apply(zoo.build(model))
    assert sentence in str(refusal.value)
