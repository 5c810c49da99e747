"""Norms within samples and of weights, standardised features, images of another size, and losses of numbers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_agent.core.native.library import Library
from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import Node, Order
from support.gradients import parameter, sample, seeds
from support.native_calls import Twins
from support.twin_tests import compares, compares_each, judge

batches, sides = st.integers(1, 5), st.integers(1, 12)


@compares("group_norm", "group_norm_grad_input", "group_norm_grad_weight", "bias_grad")
@given(batch=batches, groups=st.integers(1, 4), each=st.integers(1, 9), side=sides, saved=st.booleans(), seed=seeds)
def test_norms_of_groups(
    library: Library, *, batch: int, groups: int, each: int, side: int, saved: bool, seed: int
) -> None:
    channels = groups * each
    tensors = (sample("x", channels, side, side), parameter("weight", channels), parameter("bias", channels))
    names, outputs = ("x", "weight", "bias"), ("y", "saved") if saved else ("y",)
    node = Node("y", "group_norm", names, outputs, attributes={"groups": groups})
    if saved:
        judge(Twins(library, batch).check(node, tensors, seed, {}, Order.SAMPLES))
        return
    rng, known = np.random.default_rng(seed), {tensor.name: tensor for tensor in tensors}
    arrays = {tensor.name: rng.standard_normal(tensor.full_shape(batch)) for tensor in tensors}
    known |= {tensor.name: tensor for tensor in table.infer(node, known)}
    judge({"group_norm": Twins(library, batch).compare(node, known, arrays)})


@compares("group_norm")
@given(channels=st.integers(1, 40), seed=seeds)
def test_norms_of_groups_far_from_zero(library: Library, channels: int, seed: int) -> None:
    tensors = (sample("x", channels, 8, 8), parameter("weight", channels), parameter("bias", channels))
    node = Node("y", "group_norm", ("x", "weight", "bias"), ("y", "saved"), attributes={"groups": 1})
    far = {"x": (100 + np.random.default_rng(seed).standard_normal((2, channels, 8, 8))).astype(np.float32)}
    judge(Twins(library, 2).check(node, tensors, seed, far, Order.SAMPLES))


@compares("weight_standardisation", "weight_standardisation_grad")
@given(outputs=st.integers(1, 40), inputs=st.integers(1, 40), kernel=st.integers(1, 5), seed=seeds)
def test_standardised_weights(library: Library, outputs: int, inputs: int, kernel: int, seed: int) -> None:
    node = Node("y", "weight_standardisation", ("w",), ("y",))
    weight = parameter("w", outputs, inputs, kernel, kernel)
    judge(Twins(library, 1).check(node, (weight,), seed, {}, Order.SAMPLES))


@compares("standardise", "standardise_grad")
@given(batch=batches, features=st.integers(1, 600), seed=seeds)
def test_standardised_features(library: Library, batch: int, features: int, seed: int) -> None:
    tensors = (sample("x", features), *(parameter(name, features) for name in ("mean", "variance")), parameter("n", 1))
    node = Node("y", "standardise", ("x", "mean", "variance", "n"), ("y",))
    variance = np.random.default_rng(seed).uniform(0.1, 3, features).astype(np.float32)
    judge(Twins(library, batch).check(node, tensors, seed, {"variance": variance}, Order.SAMPLES))


@compares("upsample_bilinear", "upsample_bilinear_grad")
@given(
    batch=batches,
    old=st.tuples(sides, sides),
    new=st.tuples(st.integers(1, 30), st.integers(1, 200)),
    corners=st.sampled_from(("halved", "aligned")),
    seed=seeds,
)
def test_images_of_another_size(
    library: Library, *, batch: int, old: tuple[int, int], new: tuple[int, int], corners: str, seed: int
) -> None:
    node = Node("y", "upsample_bilinear", ("x",), ("y",), attributes={"size": new, "corners": corners})
    judge(Twins(library, batch).check(node, (sample("x", 3, *old),), seed, {}, Order.SAMPLES))


@compares_each(mse=("mse_grad",), bce=("bce_grad",))
@given(batch=batches, width=st.integers(1, 3000), spread=st.sampled_from((0.1, 1.0, 40.0)), seed=seeds)
def test_losses_of_numbers(library: Library, op: str, *, batch: int, width: int, spread: float, seed: int) -> None:
    rng, tensors = np.random.default_rng(seed), (sample("x", width), sample("t", width))
    drawn = {"x": spread * rng.standard_normal((batch, width)), "t": rng.random((batch, width))}
    given_ones = {name: array.astype(np.float32) for name, array in drawn.items()}
    judge(Twins(library, batch).check(Node("y", op, ("x", "t"), ("y",)), tensors, seed, given_ones, Order.SAMPLES))
