"""Leaving out gradients nobody needs changes none of the others."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.methods.adapted import Adapted, train_only
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Sgd
from support.kernel_calls import Laboratory
from support.random_graphs import adapted_graphs

BATCH = 3


def step(graph: Graph, arrays: dict[str, Array]) -> dict[str, Array]:
    """Return what one step at learning rate 1 subtracts: the gradients."""
    after = {name: value.copy() for name, value in arrays.items()}
    Laboratory(BATCH).run_graph(graph, after)
    return {name: value - after[name] for name, value in arrays.items()}


@settings(max_examples=60, deadline=None)
@given(adapted_graphs(), st.integers(0, 2**32 - 1))
def test_delta_gradients_are_those_of_the_unpruned_graph(adapted: Adapted, seed: int) -> None:
    graph = adapted.graph
    everything = train_only(graph, {tensor.name for tensor in graph.resident()})
    pruned = differentiate(graph, Sgd(), BATCH).direct
    unpruned = differentiate(everything.graph, Sgd(), BATCH).direct
    assert len(pruned.nodes) <= len(unpruned.nodes)
    rng = np.random.default_rng(seed)
    arrays: dict[str, Array] = {tensor.name: rng.standard_normal(tensor.shape) for tensor in graph.resident()}
    arrays["x"] = rng.standard_normal((BATCH, *graph.by_name()["x"].shape))
    arrays["labels"] = rng.integers(0, graph.by_name()["logits"].shape[0], BATCH, dtype=np.int32)
    some, all_of_them = step(pruned, arrays), step(unpruned, arrays)
    for name in adapted.delta:
        np.testing.assert_array_equal(some[name], all_of_them[name])
    assert not any(some[tensor.name].any() for tensor in graph.resident() if tensor.name not in adapted.delta)
