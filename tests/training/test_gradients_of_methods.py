"""Every method on three small models: a step subtracts the loss's gradient from the delta and from nothing else."""

import numpy as np
import pytest
from hypothesis import given, settings

from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph import running_statistics
from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.methods.adapted import Adapted, train_only
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
)
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Sgd
from support.kernel_calls import Laboratory
from support.random_graphs import adapted_graphs
from support.small_models import MODELS, arrays_for

BATCH = 4
STEP = 1e-6

EVERYWHERE: list[Method] = [Full(), Last(), Bias(), NormLast(), Lora(2, 3.0), Adapter(3), Sparse(2)]
IMAGES: list[Method] = [LiteResidual(), LiteResidual(biases=False), LiteResidual(residuals=False)]
CASES: list[tuple[str, Method]] = [
    *((model, method) for model in MODELS for method in EVERYWHERE),
    *((model, method) for model in ("cnn", "inverted") for method in IMAGES),
    ("cnn", Lora(2, targets=("conv*",))),
    ("cnn", Sparse(1, (LayerShare("conv1", 8), LayerShare("fc", 2)))),
    ("cnn", Sparse(0, (LayerShare("conv2", 4),))),
    ("inverted", Sparse(3, (LayerShare("block0.expand", 1), LayerShare("block1.depthwise", 4)))),
    ("inverted", MiniLearn(6)),
    ("inverted", MiniLearn(11, "block1.expand")),
    ("transformer", Sparse(2, (LayerShare("feed.up", 4), LayerShare("attention.value", 3)))),
    ("transformer", Lora(2, targets=("attention.query", "attention.value"))),
]


def losses(graph: Graph, arrays: dict[str, Array]) -> float:
    """Return the mean loss before the update; the training graph's, because its norms may use the batch."""
    copies = {name: value.copy() for name, value in arrays.items()}
    return float(Laboratory(BATCH).run_graph(graph, copies)["losses"].sum()) / BATCH


def steps(graph: Graph, arrays: dict[str, Array]) -> dict[str, Array]:
    """Return what one step with rate 1 subtracts from each resident tensor."""
    after = {name: value.copy() for name, value in arrays.items()}
    Laboratory(BATCH).run_graph(graph, after)
    return {tensor.name: arrays[tensor.name] - after[tensor.name] for tensor in graph.resident()}


def check_slopes(graph: Graph, arrays: dict[str, Array], gradients: dict[str, Array]) -> None:
    rng = np.random.default_rng(1)
    for name, gradient in gradients.items():
        direction = rng.standard_normal(gradient.shape)
        sides = [losses(graph, {**arrays, name: arrays[name] + sign * STEP * direction}) for sign in (1.0, -1.0)]
        slope = (sides[0] - sides[1]) / (2 * STEP)
        size = float(np.linalg.norm(gradient) * np.linalg.norm(direction))
        assert abs(float((gradient * direction).sum()) - slope) < 1e-6 * max(size, 1e-3), name


@pytest.mark.parametrize(("model", "method"), CASES, ids=str)
def test_a_step_subtracts_the_gradient_from_the_delta_alone(model: str, method: Method) -> None:
    adapted = method.apply(MODELS[model]())
    graphs = differentiate(adapted.graph, Sgd(), BATCH)
    assert graphs.delta == adapted.delta
    arrays = arrays_for(graphs.direct, BATCH, seed=7)
    found = steps(graphs.direct, arrays)
    moved = {name for name, step in found.items() if np.any(step)}
    assert moved <= set(adapted.delta)
    statistics = running_statistics.names(adapted.graph)
    trained = {name: found[name] for name in adapted.delta if name not in statistics}
    # a key's bias adds the same to all scores of a query, and one before batch statistics goes with the mean
    felt = [name for name in adapted.delta if not name.endswith("key.bias")]
    assert len(moved) >= 0.9 * len(felt)
    check_slopes(graphs.direct, arrays, trained)


@pytest.mark.parametrize(("model", "method"), [case for case in CASES if case[1] != Full()], ids=str)
def test_micro_batches_give_the_same_step_because_no_statistics_move(model: str, method: Method) -> None:
    graphs = differentiate(method.apply(MODELS[model]()).graph, Sgd(), BATCH)
    arrays = arrays_for(graphs.direct, BATCH, seed=8)
    direct, accumulating = steps(graphs.direct, arrays), steps(graphs.accumulating, arrays)
    for name in graphs.delta:
        assert np.allclose(direct[name], accumulating[name], rtol=1e-10, atol=1e-14)


def unpruned(adapted: Adapted) -> Graph:
    """Return a graph that trains every parameter, so that nothing can be left out; statistics stay frozen."""
    names = {tensor.name for tensor in adapted.graph.resident()} - running_statistics.names(adapted.graph)
    return differentiate(train_only(adapted.graph, names).graph, Sgd(), BATCH).direct


@settings(max_examples=60, deadline=None)
@given(adapted_graphs())
def test_leaving_out_what_nobody_needs_changes_no_gradient_of_the_delta(adapted: Adapted) -> None:
    pruned, whole = differentiate(adapted.graph, Sgd(), BATCH).direct, unpruned(adapted)
    assert len(pruned.nodes) <= len(whole.nodes)
    arrays = arrays_for(pruned, BATCH, seed=9)
    arrays["labels"] %= 2
    few, all_of_them = steps(pruned, arrays), steps(whole, arrays)
    for name in adapted.delta:
        assert np.allclose(few[name], all_of_them[name], rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize(("model", "method"), [case for case in CASES if case[1] != Full()], ids=str)
def test_the_small_models_too_have_the_same_gradients_unpruned(model: str, method: Method) -> None:
    adapted = method.apply(MODELS[model]())
    pruned, whole = differentiate(adapted.graph, Sgd(), BATCH).direct, unpruned(adapted)
    arrays = arrays_for(pruned, BATCH, seed=9)
    few, all_of_them = steps(pruned, arrays), steps(whole, arrays)
    for name in adapted.delta:
        assert np.allclose(few[name], all_of_them[name], rtol=1e-10, atol=1e-14)
