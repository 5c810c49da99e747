"""The rules of TinyTL and TTE on networks small enough to count by hand."""

import pytest

from hedgerow_plans.accounting import tinytl
from hedgerow_plans.accounting.tte import SparseUpdate, last_layers, partial_backward
from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.methods.adapted import train_only
from hedgerow_plans.methods.selection import Full, Last

IMAGE = 4 * 8 * 8  # elements of every image in the networks below


def chain() -> Graph:
    """Two convolutions with a norm and a rectifier, then a classifier."""
    build = Builder("chain")
    x = build.conv2d("first", build.input((4, 8, 8)), 4)
    x = build.relu("relu", build.group_norm("norm", x, 2))
    x = build.conv2d("second", x, 4, groups=4)
    return build.graph(build.linear("logits", build.flatten("flat", x), 2))


def trained(graph: Graph, *names: str) -> tinytl.Profile:
    return tinytl.profile(train_only(graph, names).graph)


def test_training_the_classifier_saves_nothing_on_the_way_to_it() -> None:
    profile = tinytl.profile(Last().apply(chain()).graph)
    frozen, head = 4 * 4 * 9 + 4 + 4 + 4 + 4 * 9 + 4, 2 * IMAGE + 2
    assert profile.parameter_bytes == frozen + 4 * head
    assert profile.peak_bits == 32 * (IMAGE + IMAGE)  # the first convolution's input and output


def test_a_bias_makes_rectifiers_save_bits_and_layers_nothing() -> None:
    profile = trained(chain(), "first.bias")
    # at the second convolution: its input, a quarter of its output for one of its groups, and the mask
    grouped = 32 * IMAGE + 32 * IMAGE // 4 + IMAGE
    assert profile.peak_bits == max(32 * 2 * IMAGE, grouped)


def test_trained_weights_save_their_layers_inputs() -> None:
    profile = tinytl.profile(Full().apply(chain()).graph)
    saved = 32 * IMAGE + 32 * IMAGE + IMAGE + 32 * IMAGE  # first, norm, mask, second
    assert profile.peak_bits == saved + 32 * (IMAGE + 2)
    assert profile.total_bytes(8) == profile.peak_bits + profile.parameter_bytes


def test_every_rectifier_saves_once_the_backward_pass_meets_one() -> None:
    """As the authors count: even those before the first trained layer."""
    after = trained(chain(), "second.weight")
    build = Builder("twice")
    x = build.relu("early", build.conv2d("first", build.input((4, 8, 8)), 4))
    x = build.relu("late", build.conv2d("second", x, 4))
    twice = build.graph(build.linear("logits", build.flatten("flat", x), 2))
    # no rectifier depends on the second weight of the chain; the classifier comes on top of that weight's input
    assert after.peak_bits == 32 * IMAGE + 32 * (IMAGE + 2)
    assert trained(twice, "second.bias").peak_bits == 32 * 2 * IMAGE + IMAGE


def block(identity: bool) -> Graph:
    """A sum of a branch with its own input, or of two branches of one input."""
    build = Builder("block")
    x = build.conv2d("stem", build.input((4, 8, 8)), 4)
    inner = build.conv2d("inner", x, 4)
    other = x if identity else build.node("other", "scale", (x,), scale=0.5)
    y = build.add("sum", inner, other)
    return build.graph(build.linear("logits", build.flatten("flat", y), 2))


def test_a_residual_input_waits_while_its_block_runs() -> None:
    assert tinytl.profile(Last().apply(block(identity=True)).graph).peak_bits == 32 * 3 * IMAGE
    assert tinytl.profile(Last().apply(block(identity=False)).graph).peak_bits == 32 * 2 * IMAGE


def test_running_statistics_are_no_parameters() -> None:
    build = Builder("normed")
    x = build.batch_norm("norm", build.input((4, 8, 8)))
    graph = build.graph(build.linear("logits", build.flatten("flat", x), 2))
    assert tinytl.profile(Last().apply(graph).graph).parameter_bytes == 4 + 4 + 4 * (2 * IMAGE + 2)


def test_a_smooth_activation_saves_its_input_whole() -> None:
    build = Builder("smooth")
    x = build.activation("swish", build.conv2d("conv", build.input((4, 8, 8)), 4), "hswish")
    graph = build.graph(build.linear("logits", build.flatten("flat", x), 2))
    # at the classifier: what the activation saved, and its own input and output
    assert trained(graph, "conv.bias").peak_bits == 32 * IMAGE + 32 * (IMAGE + 2)


def test_a_sparse_update_by_hand() -> None:
    found = partial_backward(chain(), SparseUpdate(1, {0: 0.5, 1: 0.25}))
    # half of the first weight's inputs for all outputs; a quarter of a depthwise weight; one bias of the last layer
    assert found.weight_bits == 8 * 4 * 2 * 9 + 8 * 1 * 9 + 32 * 4
    # the classifier's input, the mask of the last layer, and the kept input channels
    assert found.activation_bits == 8 * IMAGE + IMAGE + 8 * 2 * 64 + 8 * 1 * 64
    assert found.total_kib == (found.weight_bits + found.activation_bits) / 8192


def test_a_ratio_of_zero_trains_no_weight() -> None:
    assert partial_backward(chain(), SparseUpdate(1, {0: 0.0})) == partial_backward(chain(), SparseUpdate(1))


def test_the_last_layers_are_trained_whole() -> None:
    assert last_layers(chain(), 1) == SparseUpdate(1, {1: 1.0})


@pytest.mark.parametrize(
    ("update", "sentence"),
    [
        (SparseUpdate(3), "has 3 biases; choose from 0 to 2."),
        (SparseUpdate(-1), "has -1 biases"),
        (SparseUpdate(0, {2: 1.0}), "trains convolution 2; choose from 0 to 1."),
        (SparseUpdate(0, {0: 1.5}), "trains 1.5 of convolution 0; choose a ratio from 0 to 1."),
    ],
)
def test_an_update_that_does_not_exist_is_refused(update: SparseUpdate, sentence: str) -> None:
    with pytest.raises(GraphError) as refusal:
        partial_backward(chain(), update)
    assert sentence in str(refusal.value)


def test_a_network_without_a_classifier_is_refused() -> None:
    build = Builder("headless")
    graph = build.graph(build.conv2d("conv", build.input((4, 8, 8)), 4))
    with pytest.raises(GraphError, match="no linear layer to count as classifier"):
        partial_backward(graph, SparseUpdate(1))
