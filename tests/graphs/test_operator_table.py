"""Rows of the operator table: shapes, arithmetic and scratch of known layers, and sentences for what does not fit."""

import math

import pytest

from hedgerow_plans.graph import table
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Attribute, DType, Node, Role, Tensor
from hedgerow_plans.graph.tiles import CONVOLUTION_TILE_ELEMENTS, UPDATE_TILE_ELEMENTS

X = Tensor("x", (3, 8, 8))
VECTOR = Tensor("v", (6,))
LABELS = Tensor("labels", (), DType.INT32)
ROWS = Tensor("rows", (4, 6), batched=False, role=Role.TRAINABLE)
BIAS = Tensor("bias", (4,), batched=False, role=Role.TRAINABLE)
KERNEL = Tensor("kernel", (4, 3, 3, 3), batched=False, role=Role.FROZEN)
VELOCITY = Tensor("velocity", (4, 6), batched=False, role=Role.STATE)
GRADIENT = Tensor("gradient", (4, 6), batched=False)
KNOWN = {t.name: t for t in (X, VECTOR, LABELS, ROWS, BIAS, KERNEL, VELOCITY, GRADIENT)}


def node(op: str, *inputs: str, outputs: int = 1, updates: tuple[str, ...] = (), **attributes: Attribute) -> Node:
    return Node("it", op, inputs, tuple("yz"[:outputs]), updates, attributes)


def shapes(made: tuple[Tensor, ...]) -> list[tuple[tuple[int, ...], DType, bool]]:
    return [(tensor.shape, tensor.dtype, tensor.batched) for tensor in made]


FLOAT, BYTE = DType.FLOAT32, DType.UINT8


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (node("input", field="x", shape=(3, 8)), [((3, 8), FLOAT, True)]),
        (node("input", field="y"), [((), DType.INT32, True)]),
        (node("linear", "v", "rows", "bias"), [((4,), FLOAT, True)]),
        (node("linear", "v", "rows"), [((4,), FLOAT, True)]),
        (node("conv2d", "x", "kernel"), [((4, 6, 6), FLOAT, True)]),
        (node("conv2d", "x", "kernel", "bias", padding=1), [((4, 8, 8), FLOAT, True)]),
        (node("conv2d", "x", "kernel", stride=2, padding=1), [((4, 4, 4), FLOAT, True)]),
        (node("relu", "v"), [((6,), FLOAT, True)]),
        (node("relu", "x", outputs=2), [((3, 8, 8), FLOAT, True), ((24,), BYTE, True)]),
        (node("relu", "v", outputs=2), [((6,), FLOAT, True), ((1,), BYTE, True)]),
        (node("max_pool2d", "x", kernel=3, stride=2), [((3, 3, 3), FLOAT, True)]),
        (node("max_pool2d", "x", outputs=2, kernel=2, stride=2), [((3, 4, 4), FLOAT, True), ((3, 4, 4), BYTE, True)]),
        (node("reshape", "x", shape=(12, 16)), [((12, 16), FLOAT, True)]),
        (node("add", "x", "x"), [((3, 8, 8), FLOAT, True)]),
        (node("add", "rows", "gradient", scale=0.5), [((4, 6), FLOAT, False)]),
        (node("scale", "v", scale=2), [((6,), FLOAT, True)]),
        (node("cross_entropy", "v", "labels"), [((), FLOAT, True)]),
        (node("cross_entropy", "v", "labels", outputs=2), [((), FLOAT, True), ((6,), FLOAT, True)]),
        (node("bias_grad", "x"), [((3,), FLOAT, False)]),
        (node("linear_grad_weight", "v", "v"), [((6, 6), FLOAT, False)]),
        (node("zero", outputs=1, shape=(2, 3)), [((2, 3), FLOAT, False)]),
        (node("sgd", "gradient", outputs=0, updates=("rows",)), []),
        (node("sgd", "gradient", outputs=0, updates=("rows", "velocity"), momentum=0.9), []),
    ],
)
def test_shape_of_what_a_node_makes(call: Node, expected: list[tuple[tuple[int, ...], DType, bool]]) -> None:
    assert shapes(table.infer(call, KNOWN)) == expected


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_gradients_of_a_grouped_convolution_have_the_shapes_of_what_they_are_gradients_of(groups: int) -> None:
    x = Tensor("x", (4, 7, 5))
    weight = Tensor("w", (8, 4 // groups, 3, 2), batched=False)
    known = {"x": x, "w": weight}
    (y,) = table.infer(node("conv2d", "x", "w", stride=2, padding=1, groups=groups), known)
    assert y.shape == (8, 4, 3)
    known["y"] = y
    (dx,) = table.infer(node("conv2d_grad_input", "y", "w", shape=x.shape, stride=2, padding=1, groups=groups), known)
    (dw,) = table.infer(
        node("conv2d_grad_weight", "y", "x", shape=weight.shape, stride=2, padding=1, groups=groups), known
    )
    assert (dx.shape, dx.batched) == (x.shape, True)
    assert (dw.shape, dw.batched) == (weight.shape, False)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            node("softplus", "v"),
            "There is no operator 'softplus'; known are accumulate, accumulate_slope, adam, adam8bit, add,",
        ),
        (node("linear", "v"), "'it' (linear): it has 1 inputs; give it 2 to 3."),
        (node("relu", "v", outputs=0), "it has 0 outputs; give it 1 to 2."),
        (node("relu", "v", updates=("rows",)), "it has 1 updates; give it 0."),
        (node("relu", "nowhere"), "there is no tensor 'nowhere'"),
        (node("relu", "v", slope=0.1), "attribute 'slope' is unknown; known are none."),
        (
            node("max_pool2d", "x", kernel=2),
            "attribute 'stride' is missing; give it an integer, or two for rows and columns.",
        ),
        (node("scale", "v", scale=math.nan), "attribute 'scale' is nan; give it a finite number."),
        (node("scale", "v", scale=math.inf), "attribute 'scale' is inf"),
        (node("scale", "v", scale=10**400), "give it a finite number"),
        (node("scale", "v", scale=True), "attribute 'scale' is True"),
        (node("conv2d", "x", "kernel", stride=0), "attribute 'stride' is 0; give it an integer, or two for rows and"),
        (node("conv2d", "x", "kernel", padding=-1), "'padding' is -1; give it an integer, or two"),
        (node("conv2d", "x", "kernel", stride=2**40), "attribute 'stride' is 1099511627776"),
        (node("input", field="z"), "attribute 'field' is 'z'; give it x or y."),
        (node("input", field="x", shape=(3, -8)), "attribute 'shape' is (3, -8); give it a list of dimensions."),
        (node("input", field="y", shape=(3,)), "labels are one number per sample"),
        (node("linear", "x", "rows"), "'x' has shape [3, 8, 8]; give it a tensor with 1 or 2 axes per sample"),
        (node("linear", "v", "gradient", "rows"), "'rows' has shape [4, 6]; give it a parameter with 1 axes"),
        (node("linear", "rows", "rows"), "'rows' has no batch axis"),
        (node("linear", "v", "v"), "'v' has a batch axis; give it a parameter"),
        (node("conv2d", "x", "kernel", groups=3), "do not go together in 3 groups"),
        (node("reshape", "x", shape=(5,)), "'x' has shape [3, 8, 8], 192 elements, and cannot become [5]"),
        (node("add", "x", "v"), "'v' has shape [6]; give it shape [3, 8, 8]"),
        (node("max_pool2d", "x", kernel=9, stride=1), "the window 9 is larger than the image [3, 8, 8]"),
        (node("max_pool2d", "x", kernel=17, stride=1), "must fit one byte, so 16 at most"),
        (node("cross_entropy", "v", "v"), "'v' has shape [6]; give it a tensor with 0 axes per sample"),
        (node("relu", "labels"), "'labels' holds int32; give it a tensor of float32"),
        (node("relu_grad", "v", "v"), "'v' holds float32; give it a tensor of uint8"),
        (node("sgd", "gradient", outputs=0, updates=("rows",), momentum=1.0), "momentum is 1.0"),
        (node("sgd", "gradient", outputs=0, updates=("rows",), momentum=0.9), "velocity goes with momentum only"),
        (node("sgd", "gradient", outputs=0, updates=("velocity",)), "'velocity' is state; it can only update a"),
        (node("sgd", "gradient", outputs=0, updates=("bias",)), "'bias' has shape [4]; give it shape [4, 6]"),
        (node("accumulate", "gradient", outputs=0, updates=("rows",)), "'rows' is trainable"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(call: Node, words: str) -> None:
    with pytest.raises(GraphError) as refusal:
        table.infer(call, KNOWN)
    assert words in str(refusal.value)
    assert str(refusal.value).endswith(".")


def test_a_weight_for_another_width_is_refused_with_the_shape_it_should_have() -> None:
    known = {"v": Tensor("v", (32,)), "rows": ROWS}
    with pytest.raises(GraphError) as refusal:
        table.infer(node("linear", "v", "rows"), known)
    assert str(refusal.value) == (
        "Node 'it' (linear): the weight 'rows' has shape [4, 6], but 'v' has 32 features; "
        "give the weight shape [4, 32]."
    )


def test_a_kernel_larger_than_the_image_is_refused() -> None:
    known = {"x": Tensor("x", (3, 2, 8)), "kernel": KERNEL}
    with pytest.raises(GraphError, match="the kernel is larger than the padded image"):
        table.infer(node("conv2d", "x", "kernel"), known)


def costs(call: Node, micro_batch: int) -> tuple[int, int]:
    known = {**KNOWN}
    known.update((tensor.name, tensor) for tensor in table.infer(call, KNOWN))
    return table.flops(call, known, micro_batch), table.scratch_bytes(call, known, micro_batch)


def test_arithmetic_of_a_linear_layer_counts_multiplications_additions_and_bias() -> None:
    assert costs(node("linear", "v", "rows"), 1)[0] == 2 * 4 * 6
    assert costs(node("linear", "v", "rows", "bias"), 5)[0] == 5 * (2 * 4 * 6 + 4)


def test_a_convolution_costs_each_weight_at_each_position() -> None:
    plain = node("conv2d", "x", "kernel", padding=1)
    biased = node("conv2d", "x", "kernel", "bias", padding=1)
    assert costs(plain, 2)[0] == 2 * 2 * (4 * 8 * 8) * (3 * 3 * 3)
    assert costs(biased, 2)[0] - costs(plain, 2)[0] == 2 * 4 * 8 * 8


def test_backward_of_a_convolution_costs_as_much_as_forward_for_each_of_its_two_gradients() -> None:
    forward = costs(node("conv2d", "x", "kernel", padding=1), 4)[0]
    known = {**KNOWN, "dy": Tensor("dy", (4, 8, 8))}
    settings: dict[str, Attribute] = {"padding": 1}
    grad_input = Node("a", "conv2d_grad_input", ("dy", "kernel"), ("dx",), (), {**settings, "shape": (3, 8, 8)})
    grad_weight = Node("b", "conv2d_grad_weight", ("dy", "x"), ("dw",), (), {**settings, "shape": (4, 3, 3, 3)})
    for gradient in (grad_input, grad_weight):
        known.update((tensor.name, tensor) for tensor in table.infer(gradient, known))
        assert table.flops(gradient, known, 4) == forward


@pytest.mark.parametrize("micro_batch", [1, 2, 7, 64, 4096])
def test_scratch_holds_an_unfolded_image_and_stays_bounded_while_the_batch_grows(micro_batch: int) -> None:
    image_bytes = 4 * (3 * 3 * 3) * (8 * 8)
    scratch = costs(node("conv2d", "x", "kernel", padding=1), micro_batch)[1]
    assert scratch % image_bytes == 0
    assert image_bytes <= scratch <= max(image_bytes, 4 * CONVOLUTION_TILE_ELEMENTS)
    large = Tensor("large", (1000, 1000), batched=False, role=Role.TRAINABLE)
    update = Node("n", "sgd", ("gradient",), (), ("large",))
    assert table.scratch_bytes(update, {**KNOWN, "large": large}, micro_batch) == 4 * UPDATE_TILE_ELEMENTS


def test_a_rectifier_needs_scratch_only_for_its_mask() -> None:
    assert costs(node("relu", "x"), 5)[1] == 0
    assert costs(node("relu", "x", outputs=2), 1)[1] == 192


def test_arithmetic_of_the_rest() -> None:
    assert costs(node("relu", "x"), 3)[0] == 3 * 192
    assert costs(node("add", "x", "x"), 1)[0] == 192
    assert costs(node("add", "x", "x", scale=0.5), 1)[0] == 2 * 192
    assert costs(node("max_pool2d", "x", kernel=2, stride=2), 1)[0] == 3 * 4 * 4 * 4
    assert costs(node("reshape", "x", shape=(192,)), 7) == (0, 0)
    assert costs(node("input", field="x", shape=(3,)), 7) == (0, 0)
    update = node("sgd", "gradient", outputs=0, updates=("rows", "velocity"), momentum=0.9, weight_decay=0.1)
    assert costs(update, 7)[0] == 6 * 24
    assert costs(node("sgd", "gradient", outputs=0, updates=("rows",)), 7)[0] == 2 * 24


def test_every_backward_rule_stands_for_an_input_and_has_what_it_saves_as_second_output() -> None:
    for row in table.OPERATORS.values():
        assert len(row.backward) in (0, row.inputs[1]), row.name
        assert bool(row.saved) == (row.outputs == (1, 2)), row.name
