"""Softmax and attention: what they compute, and their gradients against finite differences in 64 bits."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_plans.graph.ir import Node, Tensor
from hedgerow_plans.graph.tiles import ATTENTION_TILE_ELEMENTS
from support.gradients import batches, check_gradients, parameter, sample, seeds
from support.kernel_calls import Laboratory

few = st.integers(1, 5)


@given(st.lists(few, min_size=1, max_size=3), st.booleans(), batches, seeds)
def test_softmax(shape: list[int], batched: bool, micro_batch: int, seed: int) -> None:
    x = sample("x", *shape) if batched else parameter("x", *shape)
    check_gradients(Node("n", "softmax", ("x",), ("y",)), (x,), micro_batch, seed)


def test_softmax_of_large_numbers_is_finite() -> None:
    x = np.array([[1e4, 1e4, -1e4]])
    found = Laboratory(1).run(Node("n", "softmax", ("x",), ("y",)), {"x": Tensor("x", (3,))}, {"x": x})
    assert found["y"].tolist() == [[0.5, 0.5, 0.0]]


@given(st.tuples(few, few), st.tuples(st.integers(1, 3), st.integers(1, 3)), st.integers(1, 3), batches, seeds)
def test_multi_head_attention(
    tokens: tuple[int, int], widths: tuple[int, int], heads: int, micro_batch: int, seed: int
) -> None:
    inputs = (
        sample("q", tokens[0], heads * widths[0]),
        sample("k", tokens[1], heads * widths[0]),
        sample("v", tokens[1], heads * widths[1]),
    )
    node = Node("n", "multi_head_attention", ("q", "k", "v"), ("y", "p"), attributes={"heads": heads})
    check_gradients(node, inputs, micro_batch, seed)


@pytest.mark.parametrize(("micro_batch", "heads", "tokens"), [(6, 3, 80), (2, 4, 150)], ids=["samples", "heads"])
def test_multi_head_attention_in_several_tiles(micro_batch: int, heads: int, tokens: int) -> None:
    """Tiles are some samples with all heads, or some heads of one sample where those are too many."""
    assert micro_batch * heads * tokens**2 > ATTENTION_TILE_ELEMENTS
    inputs = (sample("q", tokens, 2 * heads), sample("k", tokens, 2 * heads), sample("v", tokens, heads))
    node = Node("n", "multi_head_attention", ("q", "k", "v"), ("y", "p"), attributes={"heads": heads})
    check_gradients(node, inputs, micro_batch, seed=3)


def test_attention_matches_its_definition_with_and_without_saved_probabilities() -> None:
    rng = np.random.default_rng(4)
    q, k, v = rng.standard_normal((2, 5, 6)), rng.standard_normal((2, 4, 6)), rng.standard_normal((2, 4, 9))
    arrays = {"q": q, "k": k, "v": v}
    tensors = {name: Tensor(name, array.shape[1:]) for name, array in arrays.items()}
    saving = Node("n", "multi_head_attention", ("q", "k", "v"), ("y", "p"), attributes={"heads": 3})
    plain = Node("n", "multi_head_attention", ("q", "k", "v"), ("y",), attributes={"heads": 3})
    found = Laboratory(2).run(saving, tensors, arrays)
    for sample_number, head in np.ndindex(2, 3):
        query, key = (array[sample_number, :, 2 * head : 2 * head + 2] for array in (q, k))
        chances = np.exp(query @ key.T / math.sqrt(2))
        chances /= chances.sum(axis=1, keepdims=True)
        assert np.allclose(found["p"][sample_number, head], chances)
        wanted = chances @ v[sample_number, :, 3 * head : 3 * head + 3]
        assert np.allclose(found["y"][sample_number, :, 3 * head : 3 * head + 3], wanted)
    assert np.array_equal(Laboratory(2).run(plain, tensors, arrays)["y"], found["y"])
