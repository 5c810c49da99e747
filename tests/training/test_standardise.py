"""Standardised features: statistics of everything seen so far, one sample at a time, in place and to the last byte."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph.ir import Node, Role, Tensor
from support.gradients import batches, check_gradients, parameter, sample, seeds
from support.kernel_calls import Laboratory

STATISTICS = ("mean", "variance", "samples")


@given(batches, st.integers(1, 9), seeds)
def test_standardise(micro_batch: int, features: int, seed: int) -> None:
    inputs = (sample("x", features), parameter("mean", features), parameter("variance", features), parameter("n", 1))
    node = Node("n", "standardise", ("x", "mean", "variance", "n"), ("y",))
    variance = np.random.default_rng(seed).uniform(0.1, 3, features)
    check_gradients(node, inputs, micro_batch, seed, {"variance": variance})


def run_updates(samples: Array, micro_batch: int, dtype: str = "float64") -> tuple[dict[str, Array], Laboratory]:
    features = samples.shape[1]
    shapes = {"mean": (features,), "variance": (features,), "samples": (1,)}
    tensors = {name: Tensor(name, shape, batched=False, role=Role.TRAINABLE) for name, shape in shapes.items()}
    tensors["x"] = Tensor("x", (features,))
    first: dict[str, Array] = {"mean": np.zeros(features), "variance": np.ones(features), "samples": np.zeros(1)}
    arrays = {name: value.astype(dtype) for name, value in first.items()}
    lab = Laboratory(micro_batch, dtype)
    for start in range(0, len(samples), micro_batch):
        arrays["x"] = samples[start : start + micro_batch].astype(dtype)
        lab.run(Node("n", "update_standardisation", ("x",), (), STATISTICS), tensors, arrays)
    return arrays, lab


@pytest.mark.parametrize("micro_batch", [1, 4, 12])
def test_the_statistics_are_those_of_all_samples_however_they_came(micro_batch: int) -> None:
    samples = 5 + np.random.default_rng(2).standard_normal((24, 6)) * np.arange(1, 7)
    arrays, lab = run_updates(samples, micro_batch)
    assert np.allclose(arrays["mean"], samples.mean(axis=0), rtol=1e-12)
    assert np.allclose(arrays["variance"], samples.var(axis=0), rtol=1e-12)
    assert arrays["samples"] == 24
    reached, promised = lab.scratch_reached["n"]
    assert reached == promised


def test_thirty_two_bits_are_enough_for_a_long_stream_far_from_zero() -> None:
    samples = 1000 + np.random.default_rng(3).standard_normal((2000, 3))
    arrays, _ = run_updates(samples, 1, "float32")
    assert np.allclose(arrays["variance"], samples.var(axis=0), rtol=0.02)
