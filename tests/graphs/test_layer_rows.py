"""Rows of layers beyond the slice's: shapes, arithmetic and scratch worked out by hand, and sentences."""

import pytest

from hedgerow_plans.graph import table
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Attribute, DType, Node, Role, Tensor

IMAGE = Tensor("image", (3, 8, 6))
POOLED = Tensor("pooled", (3, 4, 3))
SEQUENCE = Tensor("sequence", (5, 6))
OTHER = Tensor("other", (7, 6))
WIDE = Tensor("wide", (7, 8))
VECTOR = Tensor("vector", (6,))
TOKENS = Tensor("tokens", (5,), DType.INT32)
ROWS = Tensor("rows", (4, 6), batched=False, role=Role.TRAINABLE)
BIAS = Tensor("bias", (4,), batched=False, role=Role.TRAINABLE)
POSITIONS = Tensor("positions", (5, 6), batched=False, role=Role.TRAINABLE)
TALL = Tensor("tall", (4, 3, 7, 1), batched=False, role=Role.FROZEN)
CHANCES = Tensor("chances", (2, 5, 7))
KNOWN = {
    t.name: t for t in (IMAGE, POOLED, SEQUENCE, OTHER, WIDE, VECTOR, TOKENS, ROWS, BIAS, POSITIONS, TALL, CHANCES)
}
FLOAT = DType.FLOAT32


def node(op: str, *inputs: str, outputs: int = 1, **attributes: Attribute) -> Node:
    return Node("it", op, inputs, tuple("yzw"[:outputs]), (), attributes)


def made(call: Node) -> list[tuple[tuple[int, ...], bool]]:
    return [(tensor.shape, tensor.batched) for tensor in table.infer(call, KNOWN)]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (node("linear", "sequence", "rows", "bias"), [((5, 4), True)]),
        (node("conv2d", "image", "tall", padding=(3, 0), stride=(1, 2)), [((4, 8, 3), True)]),
        (node("max_pool2d", "image", kernel=3, stride=2, padding=1), [((3, 4, 3), True)]),
        (node("max_pool2d", "image", kernel=3, stride=2), [((3, 3, 2), True)]),
        (node("max_pool2d", "image", kernel=3, stride=2, rounding="up"), [((3, 4, 3), True)]),
        (node("avg_pool2d", "image", kernel=(8, 6), stride=1), [((3, 1, 1), True)]),
        (node("avg_pool2d", "image", kernel=3, stride=1, padding=1), [((3, 8, 6), True)]),
        (node("global_avg_pool", "image"), [((3,), True)]),
        (node("upsample_bilinear", "image", size=(16, 5)), [((3, 16, 5), True)]),
        (node("concat", "image", "image"), [((6, 8, 6), True)]),
        (node("concat", "sequence", "other"), [((12, 6), True)]),
        (node("concat", "rows", "positions"), [((9, 6), False)]),
        (node("split", "image", outputs=3, axis=1, sizes=(1, 2, 5)), [((3, n, 6), True) for n in (1, 2, 5)]),
        (node("slice", "sequence", start=(0, 2), shape=(1, 4)), [((1, 4), True)]),
        (node("slice", "positions", start=(1, 0), shape=(2, 6)), [((2, 6), False)]),
        (node("pad", "image", before=(0, 0, 1), after=(0, 1, 0)), [((3, 9, 7), True)]),
        (node("transpose", "image", axes=(1, 2, 0)), [((8, 6, 3), True)]),
        (node("softmax", "chances"), [((2, 5, 7), True)]),
        (node("matmul", "sequence", "other", transpose_second=True), [((5, 7), True)]),
        (node("matmul", "other", "wide", transpose_first=True), [((6, 8), True)]),
        (node("embedding", "tokens", "rows"), [((5, 6), True)]),
        (node("add_parameter", "sequence", "positions"), [((5, 6), True)]),
        (node("sum_to", "sequence", shape=(6,)), [((6,), False)]),
        (node("multi_head_attention", "sequence", "other", "wide", heads=2), [((5, 8), True)]),
        (
            node("multi_head_attention", "sequence", "other", "wide", outputs=2, heads=2),
            [((5, 8), True), ((2, 5, 7), True)],
        ),
        (node("mse", "sequence", "sequence"), [((), True)]),
        (node("bce", "image", "image"), [((), True)]),
        (node("input", field="y", shape=(3,), dtype="float32"), [((3,), True)]),
    ],
)
def test_shape_of_what_a_node_makes(call: Node, expected: list[tuple[tuple[int, ...], bool]]) -> None:
    assert made(call) == expected
    assert all(tensor.dtype is FLOAT for tensor in table.infer(call, KNOWN))


def test_tokens_are_read_as_whole_numbers() -> None:
    (tokens,) = table.infer(node("input", field="x", shape=(9,), dtype="int32"), {})
    assert (tokens.shape, tokens.dtype) == ((9,), DType.INT32)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (node("linear", "image", "rows"), "give it a tensor with 1 or 2 axes per sample"),
        (node("linear", "wide", "rows"), "'wide' has 8 features; give the weight shape [4, 8]"),
        (node("conv2d", "image", "tall", stride=(1, 2, 3)), "'stride' is (1, 2, 3); give it an integer, or two"),
        (node("avg_pool2d", "image", kernel=(9, 1), stride=1), "the window [9, 1] is larger than the image [3, 8, 6]"),
        (node("avg_pool2d", "image", kernel=3, stride=1, padding=2), "is more than half of the window 3; pad less"),
        (node("avg_pool2d", "image", kernel=2, stride=2, rounding="even"), "is 'even'; give it down or up."),
        (node("global_avg_pool", "vector"), "'vector' has shape [6]; give it a tensor with 3 axes per sample"),
        (node("upsample_bilinear", "image", size=(3,)), "the size is [3]; give it rows and columns"),
        (node("concat", "sequence", "wide"), "'wide' has shape [7, 8]; give it shape [7, 6]"),
        (node("concat", "sequence", "vector"), "'vector' has shape [6]; give it shape [6, 6]"),
        (node("concat", "vector", "bias"), "only one of 'vector' and 'bias' has a batch axis"),
        (node("concat", "sequence", "other", axis=2), "attribute 'axis' is 2, but 'sequence' has shape [5, 6]"),
        (node("split", "sequence", outputs=2, sizes=(2, 2)), "make the sizes add up to 5"),
        (node("split", "sequence", outputs=3, sizes=(2, 3)), "but has 3 outputs; give it one for each size"),
        (node("slice", "sequence", start=(4, 0), shape=(2, 6)), "[2, 6] from [4, 0] on is not inside 'sequence'"),
        (node("slice", "sequence", start=(4,), shape=(1,)), "give start and shape for every axis"),
        (
            node("slice", "sequence", start=(-1, 0), shape=(1, 6)),
            "'start' is (-1, 0); give it a list of integers of at",
        ),
        (node("pad", "sequence", before=(1,), after=(0, 0)), "give a number before and after for every axis"),
        (node("transpose", "sequence", axes=(0, 0)), "the axes [0, 0] are no order of those of 'sequence'"),
        (node("matmul", "sequence", "other"), "do not go together: 6 columns meet 7 rows"),
        (node("matmul", "sequence", "image"), "give it matrices with the same axes in front"),
        (node("matmul", "sequence", "positions"), "only one of 'sequence' and 'positions' has a batch axis"),
        (node("matmul", "sequence", "other", transpose_second=1), "is 1; give it true or false."),
        (node("embedding", "sequence", "rows"), "'sequence' has shape [5, 6]; give it a tensor with 1 axes"),
        (node("embedding", "vector", "rows"), "'vector' holds float32; give it a tensor of int32"),
        (node("add_parameter", "sequence", "bias"), "[4] are not the last axes of 'sequence', shape [5, 6]"),
        (node("add_parameter", "vector", "positions"), "[5, 6] are not the last axes of 'vector', shape [6]"),
        (node("multi_head_attention", "sequence", "other", "other", heads=4), "cannot be split into 4 heads"),
        (node("multi_head_attention", "sequence", "wide", "wide", heads=2), "queries and keys share the width"),
        (node("mse", "sequence", "other"), "'other' has shape [7, 6]; give it shape [5, 6]"),
        (node("bce", "vector", "tokens"), "'tokens' holds int32; give it a tensor of float32"),
        (node("input", field="y", shape=(3,)), "give it the shape [] or the dtype float32"),
        (
            node("input", field="x", shape=(3,), dtype="int64"),
            "'dtype' is 'int64'; give it natural or float32 or int32",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(call: Node, words: str) -> None:
    with pytest.raises(GraphError) as refusal:
        table.infer(call, KNOWN)
    assert words in str(refusal.value)
    assert str(refusal.value).endswith(".")


def costs(call: Node, micro_batch: int) -> tuple[int, int]:
    known = {**KNOWN, **{tensor.name: tensor for tensor in table.infer(call, KNOWN)}}
    return table.flops(call, known, micro_batch), table.scratch_bytes(call, known, micro_batch)


@pytest.mark.parametrize(
    ("call", "flops"),
    [
        (node("linear", "sequence", "rows", "bias"), 5 * (2 * 4 * 6 + 4)),
        (node("linear_grad_weight", "sequence", "sequence"), 5 * 2 * 6 * 6),
        (node("conv2d", "image", "tall", padding=(3, 0)), 2 * (4 * 8 * 6) * (3 * 7)),
        (node("avg_pool2d", "image", kernel=2, stride=2), 36 * (4 + 1)),
        (node("global_avg_pool", "image"), 144 + 3),
        (node("upsample_bilinear", "image", size=(16, 5)), 7 * 3 * 16 * 5),
        (node("concat", "image", "image"), 0),
        (node("softmax", "chances"), 5 * 70),
        (node("matmul", "sequence", "other", transpose_second=True), 2 * 5 * 7 * 6),
        (node("matmul", "other", "wide", transpose_first=True), 2 * 6 * 8 * 7),
        (node("multi_head_attention", "sequence", "other", "wide", heads=2), 70 * (2 * (3 + 4) + 1 + 5)),
        (node("embedding", "tokens", "rows"), 0),
        (node("mse", "sequence", "sequence"), 3 * 30),
    ],
)
def test_arithmetic_of_one_sample_grows_with_the_batch(call: Node, flops: int) -> None:
    assert costs(call, 1)[0] == flops
    assert costs(call, 7)[0] == 7 * flops


def test_attention_saves_probabilities_and_has_the_scratch_of_a_tile_of_heads() -> None:
    inputs = ("sequence", "other", "wide")
    for micro_batch, tile in ((1, 1), (64, 64), (2**10, 2**9), (2**20, 2**9)):
        heads = 2 * tile
        assert costs(node("multi_head_attention", *inputs, outputs=2, heads=2), micro_batch)[1] == heads * 4 * 5
        assert costs(node("multi_head_attention", *inputs, heads=2), micro_batch)[1] == heads * 4 * (5 + 5 * 7)
    gradient = node("attention_grad_scores", "mixed", "chances", "wide", "other", of="queries")
    known = {**KNOWN, "mixed": Tensor("mixed", (5, 8))}
    assert [tensor.shape for tensor in table.infer(gradient, known)] == [(5, 6)]
    assert table.scratch_bytes(gradient, {**known, "y": Tensor("y", (5, 6))}, 64) == 64 * 2 * 4 * (5 + 5 * 7)


def test_windows_rounded_up_begin_inside_the_image() -> None:
    # four rows, window 2, stride 3: a second window would begin at row 3, a third beyond the edge
    known = {"x": Tensor("x", (1, 4, 5))}
    (y,) = table.infer(Node("n", "max_pool2d", ("x",), ("y",), (), {"kernel": 2, "stride": 3, "rounding": "up"}), known)
    assert y.shape == (1, 2, 2)
    padded: dict[str, Attribute] = {"kernel": 2, "stride": 2, "padding": 1, "rounding": "up"}
    (y,) = table.infer(Node("n", "max_pool2d", ("x",), ("y",), (), padded), {"x": Tensor("x", (1, 3, 3))})
    assert y.shape == (1, 2, 2)
