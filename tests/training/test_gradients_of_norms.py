"""Gradients of norms, activations, products and dropout against finite differences in 64 bits."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hedgerow_agent.core.kernels.call import Array
from hedgerow_plans.graph.ir import Attribute, Node, Tensor
from support.gradients import batches, check_gradients, parameter, sample, seeds

shapes = st.one_of(
    st.tuples(st.integers(1, 6)),
    st.tuples(st.integers(1, 5), st.integers(1, 6)),
    st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 5)),
)


def names(inputs: tuple[Tensor, ...]) -> tuple[str, ...]:
    return tuple(tensor.name for tensor in inputs)


@settings(max_examples=60)
@given(st.integers(1, 6), shapes, st.sampled_from([1e-5, 0.1]), seeds)
def test_batch_norm_with_statistics_of_the_batch(
    micro_batch: int, shape: tuple[int, ...], epsilon: float, seed: int
) -> None:
    # with two equal values or less nothing is left of x, and no difference can be measured
    assume(micro_batch * int(np.prod(shape[1:])) > 2)
    inputs = (sample("x", *shape), parameter("w", shape[0]), parameter("b", shape[0]))
    attributes: dict[str, Attribute] = {"statistics": "batch", "epsilon": epsilon}
    node = Node("n", "batch_norm", names(inputs), ("y", "statistics"), attributes=attributes)
    check_gradients(node, inputs, micro_batch, seed)


@given(batches, shapes, seeds)
def test_batch_norm_with_running_statistics(micro_batch: int, shape: tuple[int, ...], seed: int) -> None:
    inputs = (sample("x", *shape), *(parameter(name, shape[0]) for name in ("w", "b", "mean", "variance")))
    node = Node("n", "batch_norm", names(inputs), ("y",), attributes={"statistics": "running"})
    variance: Array = np.random.default_rng(seed).uniform(0.1, 3, shape[0])
    check_gradients(node, inputs, micro_batch, seed, {"variance": variance})


@pytest.mark.parametrize("statistics", ["batch", "running"])
def test_batch_norm_in_several_tiles(statistics: str) -> None:
    inputs = (sample("x", 6, 70, 80), *(parameter(name, 6) for name in ("w", "b", "mean", "variance")))
    inputs = inputs if statistics == "running" else inputs[:3]
    outputs = ("y",) if statistics == "running" else ("y", "statistics")
    node = Node("n", "batch_norm", names(inputs), outputs, attributes={"statistics": statistics})
    check_gradients(node, inputs, 2, 0, {"variance": np.linspace(0.5, 2, 6)})


@given(batches, shapes, st.integers(1, 3), st.sampled_from([1e-5, 0.1]), seeds)
def test_layer_norm(micro_batch: int, shape: tuple[int, ...], axes: int, epsilon: float, seed: int) -> None:
    trailing = shape[-axes:]
    assume(np.prod(trailing) > 2)
    inputs = (sample("x", *shape), parameter("w", *trailing), parameter("b", *trailing))
    node = Node("n", "layer_norm", names(inputs), ("y", "statistics"), attributes={"epsilon": epsilon})
    check_gradients(node, inputs, micro_batch, seed)


@given(batches, shapes, st.integers(1, 3), st.sampled_from([1e-5, 0.1]), seeds)
def test_rms_norm(micro_batch: int, shape: tuple[int, ...], axes: int, epsilon: float, seed: int) -> None:
    trailing = shape[-axes:]
    assume(np.prod(trailing) > 1)
    inputs = (sample("x", *shape), parameter("w", *trailing))
    node = Node("n", "rms_norm", names(inputs), ("y", "statistics"), attributes={"epsilon": epsilon})
    check_gradients(node, inputs, micro_batch, seed)


@pytest.mark.parametrize("width", [3000, 17_000], ids=["several-rows-a-tile", "a-row-larger-than-a-tile"])
@pytest.mark.parametrize("op", ["layer_norm", "rms_norm"])
def test_norms_of_rows_in_several_tiles(op: str, width: int) -> None:
    inputs = (sample("x", 4, width), parameter("w", width), parameter("b", width))[: 3 if op == "layer_norm" else 2]
    check_gradients(Node("n", op, names(inputs), ("y", "statistics")), inputs, 3, 0)


@given(batches, st.integers(1, 3), st.integers(1, 3), shapes, seeds)
def test_group_norm(micro_batch: int, groups: int, channels: int, shape: tuple[int, ...], seed: int) -> None:
    assume(channels * np.prod(shape[1:]) > 2)
    inputs = (
        sample("x", groups * channels, *shape[1:]),
        parameter("w", groups * channels),
        parameter("b", groups * channels),
    )
    node = Node("n", "group_norm", names(inputs), ("y", "statistics"), attributes={"groups": groups})
    check_gradients(node, inputs, micro_batch, seed)


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm_in_several_tiles(groups: int) -> None:
    inputs = (sample("x", 6, 70, 80), parameter("w", 6), parameter("b", 6))
    node = Node("n", "group_norm", names(inputs), ("y", "statistics"), attributes={"groups": groups})
    check_gradients(node, inputs, 2, 0)


@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 3), st.sampled_from([1e-5, 0.1]), seeds)
def test_weight_standardisation(outputs: int, inputs: int, kernel: int, epsilon: float, seed: int) -> None:
    assume(inputs * kernel * kernel > 2)
    weight = parameter("w", outputs, inputs, kernel, kernel)
    node = Node("n", "weight_standardisation", ("w",), ("y",), attributes={"epsilon": epsilon})
    check_gradients(node, (weight,), 1, seed)


SMOOTH = ("sigmoid", "tanh", "silu", "gelu")


def activation(op: str) -> Node:
    """Return a node that saves what its backward reads, which for gelu is the slope."""
    return Node("n", op, ("x",), ("y", "slope") if op == "gelu" else ("y",))


@pytest.mark.parametrize("op", SMOOTH)
@given(batches, shapes, st.sampled_from([0.3, 1.0, 4.0]), seeds)
def test_smooth_activations(op: str, micro_batch: int, shape: tuple[int, ...], spread: float, seed: int) -> None:
    x: Array = spread * np.random.default_rng(seed).standard_normal((micro_batch, *shape))
    check_gradients(activation(op), (sample("x", *shape),), micro_batch, seed, {"x": x})


@pytest.mark.parametrize("op", [*SMOOTH, "hswish"])
def test_smooth_activations_in_several_tiles(op: str) -> None:
    check_gradients(activation(op), (sample("x", 7, 7001),), 2, 0)


def away_from(kinks: tuple[float, ...], shape: tuple[int, ...], seed: int) -> Array:
    """Draw numbers that a small step does not carry over a kink."""
    x = np.random.default_rng(seed).uniform(-8, 9, shape)
    for kink in kinks:
        x = np.where(np.abs(x - kink) < 1e-3, kink + 0.01, x)
    return x


@given(batches, shapes, seeds)
def test_hswish(micro_batch: int, shape: tuple[int, ...], seed: int) -> None:
    x = away_from((-3, 3), (micro_batch, *shape), seed)
    check_gradients(Node("n", "hswish", ("x",), ("y",)), (sample("x", *shape),), micro_batch, seed, {"x": x})


@given(batches, shapes, seeds)
def test_relu6(micro_batch: int, shape: tuple[int, ...], seed: int) -> None:
    x = away_from((0, 6), (micro_batch, *shape), seed)
    node = Node("n", "relu6", ("x",), ("y", "mask"))
    check_gradients(node, (sample("x", *shape),), micro_batch, seed, {"x": x})


def test_relu6_of_a_sample_larger_than_a_tile() -> None:
    x = away_from((0, 6), (2, 3, 65_537), 0)
    check_gradients(Node("n", "relu6", ("x",), ("y", "mask")), (sample("x", 3, 65_537),), 2, 0, {"x": x})


@given(batches, shapes, seeds)
def test_mul(micro_batch: int, shape: tuple[int, ...], seed: int) -> None:
    inputs = (sample("a", *shape), sample("b", *shape))
    check_gradients(Node("n", "mul", ("a", "b"), ("y",)), inputs, micro_batch, seed)


@given(batches, shapes, st.sampled_from([0.0, 0.1, 0.5, 0.9]), st.integers(0, 2**31 - 1), seeds)
def test_dropout(micro_batch: int, shape: tuple[int, ...], rate: float, key: int, seed: int) -> None:
    node = Node("n", "dropout", ("x",), ("y",), attributes={"rate": rate, "seed": key})
    check_gradients(node, (sample("x", *shape),), micro_batch, seed)
