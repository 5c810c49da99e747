"""Gradients of what only moves numbers, and of products of matrices, against finite differences in 64 bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_plans.graph import table
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Node, Tensor
from hedgerow_plans.graph.operator import Backward
from support.gradients import batches, check_gradients, parameter, sample, seeds
from support.kernel_calls import Laboratory

few = st.integers(1, 4)
shapes = st.lists(few, min_size=1, max_size=4).map(tuple)


def tensor(name: str, shape: tuple[int, ...], batched: bool) -> Tensor:
    return sample(name, *shape) if batched else parameter(name, *shape)


@given(shapes, st.data(), st.booleans(), batches, seeds)
def test_concat(shape: tuple[int, ...], data: st.DataObject, batched: bool, micro_batch: int, seed: int) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    lengths = data.draw(st.lists(few, min_size=1, max_size=4))
    inputs = [
        tensor(f"p{number}", (*shape[:axis], length, *shape[axis + 1 :]), batched)
        for number, length in enumerate(lengths)
    ]
    node = Node("n", "concat", tuple(part.name for part in inputs), ("y",), attributes={"axis": axis})
    check_gradients(node, tuple(inputs), micro_batch, seed)


@given(shapes, st.data(), st.booleans(), batches)
def test_split_and_its_gradient_undo_each_other(
    shape: tuple[int, ...], data: st.DataObject, batched: bool, micro_batch: int
) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    sizes = tuple(data.draw(st.lists(few, min_size=1, max_size=4)))
    x = tensor("x", (*shape[:axis], sum(sizes), *shape[axis + 1 :]), batched)
    parts = tuple(f"p{number}" for number in range(len(sizes)))
    node = Node("n", "split", ("x",), parts, attributes={"axis": axis, "sizes": sizes})
    tensors = {"x": x}
    tensors.update({part.name: part for part in table.infer(node, tensors)})
    values = np.random.default_rng(0).standard_normal(x.full_shape(micro_batch))
    found = Laboratory(micro_batch).run(node, tensors, {"x": values})
    pieces = np.split(values, np.cumsum(sizes)[:-1], axis=axis + batched)
    assert all(np.array_equal(found[name], piece) for name, piece in zip(parts, pieces, strict=True))
    rule = table.operator("split").backward[0]
    assert rule is not None
    backward = rule(Backward(node, tensors, parts[0], "dx", 1, parts))
    assert backward is not None
    assert np.array_equal(Laboratory(micro_batch).run(backward, tensors, found)["dx"], values)


def test_a_split_with_a_part_that_nobody_uses_is_refused() -> None:
    node = Node("n", "split", ("x",), ("a", "b"), attributes={"sizes": (1, 2)})
    rule = table.operator("split").backward[0]
    assert rule is not None
    with pytest.raises(GraphError, match=r"part 'b' of node 'n' \(split\) is not used; cut out"):
        rule(Backward(node, {"x": sample("x", 3)}, "da", "dx", 1, ("da", "")))


@given(shapes, st.data(), st.booleans(), batches, seeds)
def test_slice(shape: tuple[int, ...], data: st.DataObject, batched: bool, micro_batch: int, seed: int) -> None:
    start = tuple(data.draw(st.integers(0, side - 1)) for side in shape)
    length = tuple(data.draw(st.integers(1, side - first)) for side, first in zip(shape, start, strict=True))
    node = Node("n", "slice", ("x",), ("y",), attributes={"start": start, "shape": length})
    check_gradients(node, (tensor("x", shape, batched),), micro_batch, seed)


@given(shapes, st.data(), st.booleans(), batches, seeds)
def test_pad(shape: tuple[int, ...], data: st.DataObject, batched: bool, micro_batch: int, seed: int) -> None:
    before, after = (tuple(data.draw(st.integers(0, 2)) for _ in shape) for _ in range(2))
    value = data.draw(st.sampled_from([0.0, -3.5]))
    node = Node("n", "pad", ("x",), ("y",), attributes={"before": before, "after": after, "value": value})
    check_gradients(node, (tensor("x", shape, batched),), micro_batch, seed)


@given(shapes, st.data(), st.booleans(), batches, seeds)
def test_transpose(shape: tuple[int, ...], data: st.DataObject, batched: bool, micro_batch: int, seed: int) -> None:
    axes = tuple(data.draw(st.permutations(range(len(shape)))))
    node = Node("n", "transpose", ("x",), ("y",), attributes={"axes": axes})
    check_gradients(node, (tensor("x", shape, batched),), micro_batch, seed)


@given(
    st.lists(few, max_size=2).map(tuple),
    st.tuples(few, few, few),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    batches,
    seeds,
)
def test_matmul(
    front: tuple[int, ...], sizes: tuple[int, int, int], flags: tuple[bool, bool, bool], micro_batch: int, seed: int
) -> None:
    rows, inner, columns = sizes
    first_turned, second_turned, batched = flags
    first = (inner, rows) if first_turned else (rows, inner)
    second = (columns, inner) if second_turned else (inner, columns)
    node = Node(
        "n",
        "matmul",
        ("a", "b"),
        ("y",),
        attributes={"transpose_first": first_turned, "transpose_second": second_turned},
    )
    inputs = (tensor("a", (*front, *first), batched), tensor("b", (*front, *second), batched))
    check_gradients(node, inputs, micro_batch, seed)
