"""Rows of norms, activations and dropout: shapes, saved bytes, arithmetic, and sentences for what does not fit."""

import pytest

from hedgerow_plans.graph import table
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Attribute, DType, Node, Role, Tensor

X = Tensor("x", (4, 6, 6))
ROWS = Tensor("rows", (5, 8))
BY_CHANNEL = Tensor("c", (4,), batched=False, role=Role.TRAINABLE)
BY_COLUMN = Tensor("w", (8,), batched=False, role=Role.TRAINABLE)
KERNEL = Tensor("kernel", (4, 3, 3, 3), batched=False, role=Role.TRAINABLE)
SAVED = Tensor("saved", (2, 4), batched=False)
LABELS = Tensor("labels", (), DType.INT32)
KNOWN = {t.name: t for t in (X, ROWS, BY_CHANNEL, BY_COLUMN, KERNEL, SAVED, LABELS)}


def node(op: str, *inputs: str, outputs: int = 1, updates: tuple[str, ...] = (), **attributes: Attribute) -> Node:
    return Node("it", op, inputs, tuple("yz"[:outputs]), updates, attributes)


BATCH = node("batch_norm", "x", "c", "c", outputs=2, statistics="batch")
RUNNING = node("batch_norm", "x", "c", "c", "c", "c", statistics="running")


@pytest.mark.parametrize(
    ("call", "micro_batch", "saved_bytes"),
    [
        (BATCH, 8, 4 * 2 * 4),  # mean and variance of each channel, whatever the batch
        (node("layer_norm", "rows", "w", "w", outputs=2), 3, 3 * 5 * 8),
        (node("rms_norm", "rows", "w", outputs=2), 3, 3 * 5 * 4),
        (node("group_norm", "x", "c", "c", outputs=2, groups=2), 3, 3 * 2 * 8),
        (node("relu6", "x", outputs=2), 3, 3 * 144 // 8),
    ],
)
def test_what_a_backward_needs_besides_its_input_is_small(call: Node, micro_batch: int, saved_bytes: int) -> None:
    y, saved = table.infer(call, KNOWN)
    assert y.shape == KNOWN[call.inputs[0]].shape
    assert saved.bytes(micro_batch) == saved_bytes


@pytest.mark.parametrize(
    ("call", "per_element"),
    [
        (BATCH, 6),
        (RUNNING, 2),
        (node("layer_norm", "rows", "w", "w"), 7),
        (node("rms_norm", "rows", "w"), 4),
        (node("group_norm", "x", "c", "c", groups=4), 7),
        (node("mul", "x", "x"), 1),
        (node("relu6", "x"), 2),
        (node("dropout", "x", rate=0.1, seed=0), 1),
        (node("silu", "x"), 5),
    ],
)
def test_arithmetic_grows_with_the_elements(call: Node, per_element: int) -> None:
    known = {**KNOWN, **{tensor.name: tensor for tensor in table.infer(call, KNOWN)}}
    for micro_batch in (1, 7):
        elements = KNOWN[call.inputs[0]].elements * micro_batch
        assert table.flops(call, known, micro_batch) == per_element * elements


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (node("batch_norm", "x", "c", "c", statistics="other"), "'statistics' is 'other'; give it batch or running."),
        (node("batch_norm", "x", "c", "c"), "attribute 'statistics' is missing"),
        (node("batch_norm", "x", "c", "c", statistics="running"), "it has 3 inputs; running statistics need x,"),
        (node("batch_norm", "x", "c", "c", "c", statistics="batch"), "it has 4 inputs; give it x, weight, bias, and"),
        (
            node("batch_norm", "x", "c", "c", "c", "c", outputs=2, statistics="running"),
            "only statistics of the batch are saved",
        ),
        (node("batch_norm", "x", "w", "w", statistics="batch"), "'w' has shape [8]; give it shape [4]"),
        (node("batch_norm", "x", "c", "c", statistics="batch", epsilon=0.0), "epsilon is 0.0; give it a number above"),
        (node("batch_norm", "x", "c", "c", statistics="batch", momentum=1.5), "momentum is 1.5; give it a number from"),
        (node("update_running_statistics", "saved", outputs=0, updates=("c", "c"), samples=1), "has no variance"),
        (
            node("update_running_statistics", "saved", outputs=0, updates=("w", "w"), samples=9),
            "'w' has shape [8]; give it shape [4]",
        ),
        (node("layer_norm", "rows", "c", "c"), "'rows' has shape [5, 8], which does not end in [4]"),
        (node("layer_norm", "rows", "w", "c"), "'c' has shape [4]; give it shape [8]"),
        (node("rms_norm", "rows", "w", epsilon=-1.0), "epsilon is -1.0; give it a number above 0"),
        (node("group_norm", "x", "c", "c", groups=3), "4 channels do not go into 3 groups; choose a number that"),
        (node("weight_standardisation", "c"), "'c' has shape [4]; give it a weight"),
        (node("weight_standardisation", "x"), "'x' has a batch axis; give it a layer's weight"),
        (node("dropout", "x", rate=1.0, seed=0), "rate is 1.0; give it a number from 0 to below 1"),
        (node("dropout", "x", rate=0.5, seed=-1), "attribute 'seed' is -1; give it an integer of at least 0."),
        (node("dropout", "kernel", rate=0.5, seed=1), "'kernel' has no batch axis"),
        (node("gelu", "labels"), "'labels' holds int32; give it a tensor of float32"),
        (node("mul", "x", "rows"), "'rows' has shape [5, 8]; give it shape [4, 6, 6]"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(call: Node, words: str) -> None:
    with pytest.raises(GraphError) as refusal:
        table.infer(call, KNOWN)
    assert words in str(refusal.value)
    assert str(refusal.value).endswith(".")
