"""Losses that compare element by element: values, gradients, and training with them from reading to update."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import Node, Tensor
from support.gradients import batches, sample, seeds, slope
from support.kernel_calls import Laboratory, gradient_node


def run_loss(op: str, predictions: Array, targets: Array) -> Array:
    tensors = {name: Tensor(name, predictions.shape[1:]) for name in ("p", "t")}
    lab = Laboratory(len(predictions), str(predictions.dtype))
    return lab.run(Node("n", op, ("p", "t"), ("losses",)), tensors, {"p": predictions, "t": targets})["losses"]


@pytest.mark.parametrize("op", ["mse", "bce"])
@given(batches, st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(1, 8), seeds)
def test_gradient_is_that_of_the_mean_over_the_batch(
    op: str, micro_batch: int, shape: list[int], batch_size: int, seed: int
) -> None:
    lab, rng = Laboratory(micro_batch), np.random.default_rng(seed)
    tensors = {tensor.name: tensor for tensor in (sample("p", *shape), sample("t", *shape))}
    node = Node("n", op, ("p", "t"), ("losses",))
    tensors.update({tensor.name: tensor for tensor in table.infer(node, tensors)})
    arrays: dict[str, Array] = {
        "p": 3 * rng.standard_normal((micro_batch, *shape)),
        "t": rng.random((micro_batch, *shape)),
        "dy": np.full(micro_batch, 1 / batch_size),
    }
    backward = gradient_node(node, tensors, 0, batch_size)
    assert backward is not None
    found = lab.run(backward, tensors, arrays)["result"]
    direction = rng.standard_normal(found.shape)
    wanted = slope(lab, node, tensors, arrays, ("p", direction))
    scale = float(np.abs(found * direction).sum()) + 1e-3
    assert abs(float((found * direction).sum()) - wanted) < 1e-6 * scale


def test_mean_squared_error_matches_its_definition() -> None:
    p, t = np.array([[[1.0, 2.0], [3.0, 4.0]]]), np.array([[[1.0, 0.0], [0.0, 4.0]]])
    assert run_loss("mse", p, t).tolist() == [(4 + 9) / 4]


def test_binary_cross_entropy_matches_its_definition_and_does_not_overflow() -> None:
    z, t = np.array([[0.5, -1.5, 2.0]]), np.array([[1.0, 0.0, 0.25]])
    chance = 1 / (1 + np.exp(-z))
    wanted = -(t * np.log(chance) + (1 - t) * np.log(1 - chance)).mean()
    assert np.isclose(run_loss("bce", z, t)[0], wanted)
    far = np.array([[1e5, -1e5]], np.float32)
    assert run_loss("bce", far, np.array([[1.0, 0.0]], np.float32)).tolist() == [0.0]
    assert run_loss("bce", far, np.array([[0.0, 1.0]], np.float32)).tolist() == [1e5]
