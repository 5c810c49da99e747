"""What moves numbers or does little with them: the library's kernels beside numpy's."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.native.library import Library
from hedgerow_plans.graph.ir import Attribute, Node, Order, Tensor
from support.gradients import parameter, sample, seeds
from support.native_calls import Twins
from support.twin_tests import compares, compares_each, judge, orders

sizes, batches = st.integers(1, 40), st.integers(1, 5)


@compares("reorder")
@given(batch=batches, channels=sizes, side=st.integers(1, 6), source=orders, target=orders, seed=seeds)
def test_copies_into_another_order(
    library: Library, *, batch: int, channels: int, side: int, source: Order, target: Order, seed: int
) -> None:
    tensors = {
        "x": replace(sample("x", channels, side, 4), order=source),
        "y": replace(sample("y", channels, side, 4), order=target),
    }
    array = np.random.default_rng(seed).standard_normal((batch, channels, side, 4)).astype(np.float32)
    node = Node("y", "reorder", ("x",), ("y",))
    assert Twins(library, batch).compare(node, tensors, {"x": array}) == 0


@compares("transpose")
@given(batch=batches, shape=st.tuples(sizes, st.integers(1, 6), st.integers(1, 5)), axes=st.permutations(range(3)))
def test_turned_axes(library: Library, batch: int, shape: tuple[int, int, int], axes: list[int]) -> None:
    node = Node("y", "transpose", ("x",), ("y",), attributes={"axes": tuple(axes)})
    judge(Twins(library, batch).check(node, (sample("x", *shape),), 1, {}, Order.SAMPLES))


@compares("reshape")
@given(batch=batches, rows=sizes, columns=sizes, seed=seeds)
def test_other_shapes(library: Library, batch: int, rows: int, columns: int, seed: int) -> None:
    node = Node("y", "reshape", ("x",), ("y",), attributes={"shape": (columns, rows)})
    judge(Twins(library, batch).check(node, (sample("x", rows, columns),), seed, {}, Order.SAMPLES))


margins = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))


@compares("pad", "slice")
@given(batch=batches, channels=sizes, before=margins, after=margins, order=orders, seed=seeds)
def test_margins_put_on_and_cut_off(
    library: Library,
    *,
    batch: int,
    channels: int,
    before: tuple[int, int, int],
    after: tuple[int, int, int],
    order: Order,
    seed: int,
) -> None:
    attributes: dict[str, Attribute] = {"before": before, "after": after, "value": -1.5}
    node = Node("y", "pad", ("x",), ("y",), attributes=attributes)
    judge(Twins(library, batch).check(node, (sample("x", channels, 4, 3),), seed, {}, order))


@compares("concat", "slice")
@given(batch=batches, channels=st.tuples(sizes, sizes, sizes), order=orders, seed=seeds)
def test_joined_channels(library: Library, batch: int, channels: tuple[int, int, int], order: Order, seed: int) -> None:
    parts = tuple(sample(f"x{number}", count, 3, 4) for number, count in enumerate(channels))
    node = Node("y", "concat", ("x0", "x1", "x2"), ("y",))
    judge(Twins(library, batch).check(node, parts, seed, {}, order))


@compares("split")
@given(batch=batches, channels=st.tuples(sizes, sizes), order=orders, seed=seeds)
def test_channels_taken_apart(library: Library, batch: int, channels: tuple[int, int], order: Order, seed: int) -> None:
    x = replace(sample("x", sum(channels), 3, 4), order=order)
    made = {name: replace(sample(name, count, 3, 4), order=order) for name, count in zip("yz", channels, strict=True)}
    array = np.random.default_rng(seed).standard_normal(x.full_shape(batch)).astype(np.float32)
    node = Node("y", "split", ("x",), ("y", "z"), attributes={"sizes": channels})
    judge({"split": Twins(library, batch).compare(node, {"x": x, **made}, {"x": array})})


@compares_each(relu_grad_from_result=(), relu6_grad_from_result=())
@given(batch=batches, channels=sizes, order=orders, seed=seeds)
def test_gradients_by_what_a_rectifier_gave(
    library: Library, op: str, *, batch: int, channels: int, order: Order, seed: int
) -> None:
    tensors = {name: replace(sample(name, channels, 3, 5), order=order) for name in ("dy", "y", "dx")}
    rng, shape = np.random.default_rng(seed), tensors["y"].full_shape(batch)
    arrays = {"dy": rng.standard_normal(shape), "y": np.clip(6 * rng.standard_normal(shape), 0, 6)}
    judge({op: Twins(library, batch).compare(Node("dx", op, ("dy", "y"), ("dx",)), tensors, arrays)})


@compares("scale")
@given(batch=batches, channels=sizes, order=orders, seed=seeds)
def test_multiples(library: Library, batch: int, channels: int, order: Order, seed: int) -> None:
    node = Node("y", "scale", ("x",), ("y",), attributes={"scale": -0.3})
    judge(Twins(library, batch).check(node, (sample("x", channels, 5, 3),), seed, {}, order))


@compares("add_parameter", "sum_to")
@given(batch=batches, rows=sizes, width=sizes, seed=seeds)
def test_a_parameter_added_to_every_sample(library: Library, batch: int, rows: int, width: int, seed: int) -> None:
    node = Node("y", "add_parameter", ("x", "p"), ("y",))
    tensors = (sample("x", rows, width), parameter("p", rows, width))
    judge(Twins(library, batch).check(node, tensors, seed, {}, Order.SAMPLES))


@compares("matmul")
@given(
    batch=batches,
    shape=st.tuples(sizes, sizes, sizes),
    first=st.booleans(),
    second=st.booleans(),
    seed=seeds,
)
def test_products_of_matrices(
    library: Library, *, batch: int, shape: tuple[int, int, int], first: bool, second: bool, seed: int
) -> None:
    m, n, k = shape
    tensors = (sample("a", 2, *((k, m) if first else (m, k))), sample("b", 2, *((n, k) if second else (k, n))))
    attributes = {"transpose_first": first, "transpose_second": second}
    node = Node("y", "matmul", ("a", "b"), ("y",), attributes=attributes)
    judge(Twins(library, batch).check(node, tensors, seed, {}, Order.SAMPLES))


@compares("zero", "accumulate")
@given(size=st.integers(1, 20_000), seed=seeds)
def test_gradients_of_several_micro_batches_added_up(library: Library, size: int, seed: int) -> None:
    twins, rng = Twins(library, 1), np.random.default_rng(seed)
    tensors = {"g": parameter("g", size), "sum": Tensor("sum", (size,), batched=False)}
    arrays: dict[str, Array] = {name: rng.standard_normal(size) for name in tensors}
    node = Node("sum", "zero", (), ("sum",), attributes={"shape": (size,)})
    judge({"zero": twins.compare(node, tensors, arrays)})
    judge({"accumulate": twins.compare(Node("add", "accumulate", ("g",), (), ("sum",)), tensors, arrays)})
