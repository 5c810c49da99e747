"""What chance decides has the bits of numpy's kernels; and norms of gradients have theirs on any number of threads."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.native.library import Library
from hedgerow_plans.graph.ir import Node, Tensor
from support.gradients import parameter, sample, seeds
from support.kernel_calls import Laboratory, Moment
from support.native_calls import Twins, native_bind
from support.twin_tests import compares, judge, trained

words = st.integers(0, 2**31 - 1)
moments = st.builds(Moment, seed=st.integers(-(2**70), 2**70), step=st.integers(0, 2**40))


@compares("dropout")
@given(
    batch=st.integers(1, 5),
    width=st.integers(1, 20_000),
    rate=st.sampled_from((0.0, 0.1, 0.5, 0.999)),
    seed=words,
    now=moments,
    rows=st.lists(st.integers(0, 2**40), min_size=5, max_size=5),
)
def test_the_same_elements_are_dropped(
    library: Library, *, batch: int, width: int, rate: float, seed: int, now: Moment, rows: list[int]
) -> None:
    moment = Moment(now.seed, now.step, np.array(rows[:batch]))
    node = Node("y", "dropout", ("x",), ("y",), attributes={"rate": rate, "seed": seed})
    x = np.random.default_rng(1).standard_normal((batch, width)).astype(np.float32)
    tensors = {"x": sample("x", width), "y": sample("y", width)}
    assert Twins(library, batch).differing(node, tensors, {"x": x}, moment) == {}


def test_of_a_last_batch_that_is_not_full_the_rest_is_kept(library: Library) -> None:
    node = Node("y", "dropout", ("x",), ("y",), attributes={"rate": 0.5, "seed": 3})
    tensors, x = {"x": sample("x", 50), "y": sample("y", 50)}, np.ones((4, 50), np.float32)
    now = Moment(rows=slice(7, 9))
    assert Twins(library, 4).differing(node, tensors, {"x": x}, now) == {}
    lab = Laboratory(4, "float32", bind=native_bind(library), now=now)
    dropped = (lab.run(node, tensors, {"x": x})["y"] == 0).any(axis=1)
    assert dropped.tolist() == [True, True, False, False]


@compares("perturbed")
@given(size=st.integers(1, 20_000), key=words, distance=st.sampled_from((1e-3, 0.3)), now=moments)
def test_parameters_are_moved_along_the_same_direction(
    library: Library, size: int, key: int, distance: float, now: Moment
) -> None:
    node = Node("y", "perturbed", ("p",), ("y",), attributes={"key": key, "distance": distance})
    arrays = {"p": np.random.default_rng(1).standard_normal(size).astype(np.float32)}
    tensors = {"p": trained("p", size), "y": Tensor("y", (size,), batched=False)}
    assert Twins(library, 1).differing(node, tensors, arrays, now) == {}


@compares("descend")
@given(size=st.integers(1, 20_000), key=words, decay=st.sampled_from((0.0, 0.1)), now=moments, seed=seeds)
def test_parameters_go_down_the_slope(
    library: Library, *, size: int, key: int, decay: float, now: Moment, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    tensors = {"p": trained("p", size), "slope": Tensor("slope", (1,), batched=False)}
    node = Node("descend", "descend", ("slope",), (), ("p",), attributes={"key": key, "weight_decay": decay})
    arrays: dict[str, Array] = {
        name: rng.standard_normal(tensor.shape).astype(np.float32) for name, tensor in tensors.items()
    }
    judge({"descend": Twins(library, 1).compare(node, tensors, arrays)})
    if not decay:
        assert Twins(library, 1).differing(node, tensors, arrays, now) == {}


@compares("accumulate_slope")
@given(batch=st.integers(1, 300), seed=seeds)
def test_the_slope_that_losses_tell_of(library: Library, batch: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tensors = {"ahead": sample("ahead"), "behind": sample("behind"), "sum": Tensor("sum", (1,), batched=False)}
    arrays: dict[str, Array] = {"ahead": rng.random(batch), "behind": rng.random(batch), "sum": rng.random(1)}
    attributes = {"distance": 0.01, "batch_size": batch}
    node = Node("slope", "accumulate_slope", ("ahead", "behind"), (), ("sum",), attributes=attributes)
    judge({"accumulate_slope": Twins(library, batch).compare(node, tensors, arrays)})


def squares(*before: str) -> Node:
    return Node("sum", "sum_squares", ("g", *before), ("sum",))


@compares("sum_squares")
@given(size=st.integers(1, 50_000), before=st.booleans(), seed=seeds)
def test_sums_of_squares(library: Library, *, size: int, before: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tensors = {"g": parameter("g", size), "so_far": parameter("so_far"), "sum": Tensor("sum", (), batched=False)}
    arrays: dict[str, Array] = {"g": rng.standard_normal(size), "so_far": np.array(3.5)}
    node = squares("so_far") if before else squares()
    judge({"sum_squares": Twins(library, 1).compare(node, tensors, arrays)})


@pytest.mark.parametrize("size", [7, 9_000, 1_000_003])
def test_a_sum_of_squares_has_the_same_bits_however_many_threads_share_it(library: Library, size: int) -> None:
    tensors = {"g": parameter("g", size), "sum": Tensor("sum", (), batched=False)}
    gradient = np.random.default_rng(1).standard_normal(size).astype(np.float32)
    sums = {
        float(
            Laboratory(1, "float32", bind=native_bind(library, parts)).run(squares(), tensors, {"g": gradient})["sum"]
        )
        for parts in (1, 2, 3, 4)
    }
    assert len(sums) == 1


@compares("clip_factor")
@given(total=st.sampled_from((0.0, 0.2, 0.25, 1.0, 9.0, 1e-30, 1e30)), limit=st.sampled_from((0.5, 1.0, 3.0)))
def test_factors_of_gradients(library: Library, total: float, limit: float) -> None:
    tensors = {"sum": parameter("sum"), "factor": Tensor("factor", (), batched=False)}
    node = Node("factor", "clip_factor", ("sum",), ("factor",), attributes={"limit": limit})
    judge({"clip_factor": Twins(library, 1).compare(node, tensors, {"sum": np.array(total, np.float32)})})


@pytest.mark.parametrize(("total", "factor"), [(math.inf, 0.0), (math.nan, math.nan), (-1.0, math.nan)])
def test_factors_of_gradients_that_are_no_numbers(library: Library, total: float, factor: float) -> None:
    tensors = {"sum": parameter("sum"), "factor": Tensor("factor", (), batched=False)}
    node = Node("factor", "clip_factor", ("sum",), ("factor",), attributes={"limit": 1.0})
    for bind in (None, native_bind(library)):
        lab = Laboratory(1, "float32") if bind is None else Laboratory(1, "float32", bind=bind)
        found = lab.run(node, tensors, {"sum": np.array(total, np.float32)})["factor"]
        np.testing.assert_equal(float(found), factor)
