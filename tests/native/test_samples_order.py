"""Kernels of images as their shapes say, which programs for small budgets use: like numpy's, and all of a step."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.native.library import Library
from hedgerow_agent.core.native.segments import NativeBackend
from hedgerow_plans.graph import table
from hedgerow_plans.graph.ir import Attribute, Node, Order
from hedgerow_plans.methods.catalogue import Full, Lora, Method
from hedgerow_plans.models import zoo
from hedgerow_plans.plan import Program
from support.convolutions import Case, dense, depthwise, grouped, pointwise
from support.gradients import parameter, sample, seeds
from support.native_calls import Twins
from support.native_records import Recorder
from support.programs import make_program
from support.sampling import sample as sampled

MOST = {
    "conv2d": 2e-6,
    "conv2d_grad_input": 2e-6,
    "conv2d_grad_weight": 2e-6,
    "batch_norm": 2e-6,
    "batch_norm_grad_input": 2e-6,
    "batch_norm_grad_weight": 2e-6,
    "max_pool2d": 0.0,
    "max_pool2d_grad": 1e-6,
    "avg_pool2d": 1e-6,
    "avg_pool2d_grad": 1e-6,
}
"""The largest distance to numpy in 64 bits beyond twice that of numpy in 32, of a result's largest number or of 1."""


def judge(op: str, distance: float) -> None:
    assert distance <= MOST[op], (op, distance)


def check_convolution(library: Library, case: Case, seed: int) -> None:
    """Compare a convolution and its gradients."""
    twins, rng = Twins(library, case.samples), np.random.default_rng(seed)
    bias = (parameter("b", case.weight[0]),) if case.bias else ()
    known = {tensor.name: tensor for tensor in (sample("x", *case.image), parameter("w", *case.weight), *bias)}
    forward = Node("y", "conv2d", tuple(known), ("y",), attributes=case.attributes)
    (y,) = table.infer(forward, known)
    known |= {"y": y, "dy": replace(y, name="dy")}
    arrays: dict[str, Array] = {
        name: rng.standard_normal(tensor.full_shape(case.samples)).astype(np.float32) for name, tensor in known.items()
    }
    for node in (
        forward,
        Node("dx", "conv2d_grad_input", ("dy", "w"), ("dx",), attributes={**case.attributes, "shape": case.image}),
        Node("dw", "conv2d_grad_weight", ("dy", "x"), ("dw",), attributes={**case.attributes, "shape": case.weight}),
    ):
        (made,) = table.infer(node, known)
        judge(node.op, twins.compare(node, {**known, made.name: made}, arrays))


@given(case=dense(), seed=seeds)
def test_convolutions(library: Library, case: Case, seed: int) -> None:
    check_convolution(library, case, seed)


@given(case=grouped(), seed=seeds)
def test_convolutions_in_groups(library: Library, case: Case, seed: int) -> None:
    check_convolution(library, case, seed)


@given(case=depthwise(), seed=seeds)
def test_depthwise_convolutions(library: Library, case: Case, seed: int) -> None:
    check_convolution(library, case, seed)


@given(case=pointwise(), seed=seeds)
def test_windows_of_one_pixel(library: Library, case: Case, seed: int) -> None:
    check_convolution(library, case, seed)


SAME: dict[str, Attribute] = {"padding": 1}
HALF: dict[str, Attribute] = {"padding": 1, "stride": 2}
LAYERS = {
    "first layer": Case((1, 28, 28), (8, 1, 3, 3), SAME, 5, bias=True),
    "many channels": Case((70, 9, 10), (21, 70, 3, 3), SAME, 3, bias=True),
    "halved": Case((40, 15, 14), (33, 40, 3, 3), HALF, 3),
    "tall window": Case((1, 49, 10), (24, 1, 10, 4), {"stride": 2, "padding": (5, 1)}, 4, bias=True),
    "depthwise, wide rows": Case((24, 25, 40), (24, 1, 3, 3), {**SAME, "groups": 24}, 3, bias=True),
    "depthwise, halved": Case((24, 13, 11), (24, 1, 3, 3), {**HALF, "groups": 24}, 8),
    "shortcut": Case((32, 16, 16), (48, 32, 1, 1), {"stride": 2}, 4, bias=True),
    "one pixel of many": Case((300, 5, 5), (36, 300, 1, 1), {}, 3, bias=True),
    "one pixel of a whole image": Case((96, 1, 1), (70, 96, 1, 1), {}, 6, bias=True),
    "deep product": Case((600, 4, 4), (10, 600, 1, 1), {}, 2),
    "larger stride than window": Case((6, 20, 20), (9, 6, 2, 2), {"stride": 3}, 4),
}


@pytest.mark.parametrize("case", LAYERS.values(), ids=list(LAYERS))
def test_layers_of_real_networks(library: Library, case: Case) -> None:
    check_convolution(library, case, 1)


def norms(own: bool) -> list[Node]:
    """Return a norm and its gradients, with the statistics of the batch or with running ones."""
    attributes: dict[str, Attribute] = {"statistics": "batch" if own else "running"}
    running = () if own else ("mean", "variance")
    from_batch = (
        ("y", "batch_norm", ("x", "weight", "bias"), ("y", "statistics")),
        ("dx", "batch_norm_grad_input", ("dy", "x", "saved", "weight"), ("dx",)),
        ("faster", "batch_norm_grad_input", ("dy", "x", "saved", "weight", "along", "level"), ("faster",)),
    )
    from_running = (("dx", "batch_norm_grad_input", ("dy", "variance", "weight"), ("dx",)),)
    drafts = (
        ("plain", "batch_norm", ("x", "weight", "bias", *running), ("plain",)),
        ("dw", "batch_norm_grad_weight", ("dy", "x", *(running or ("saved",))), ("dw",)),
        *(from_batch if own else from_running),
    )
    return [Node(name, op, inputs, outputs, attributes=attributes) for name, op, inputs, outputs in drafts]


@pytest.mark.parametrize("own", [True, False], ids=["batch", "running"])
@given(
    batch=st.integers(1, 5),
    channels=st.integers(1, 20),
    sides=st.tuples(st.integers(1, 9), st.integers(2, 9)),
    seed=seeds,
)
def test_norms(library: Library, *, own: bool, batch: int, channels: int, sides: tuple[int, int], seed: int) -> None:
    twins, rng = Twins(library, batch), np.random.default_rng(seed)
    tensors = {
        **{name: sample(name, channels, *sides) for name in ("x", "dy")},
        **{name: parameter(name, channels) for name in ("weight", "bias", "mean", "variance", "along", "level")},
        "saved": parameter("saved", 2, channels),
    }
    arrays: dict[str, Array] = {
        name: rng.standard_normal(tensor.full_shape(batch)).astype(np.float32) for name, tensor in tensors.items()
    }
    arrays["variance"] = arrays["saved"][1] = rng.random(channels).astype(np.float32) + 0.5
    for node in norms(own):
        judge(node.op, twins.compare(node, tensors, arrays))


@pytest.mark.parametrize("op", ["max_pool2d", "avg_pool2d"])
@pytest.mark.parametrize("kernel", [(2, 2), (3, 2)])
def test_pools_of_long_rows(library: Library, op: str, kernel: tuple[int, int]) -> None:
    attributes: dict[str, Attribute] = {"kernel": kernel, "stride": 2, "padding": (kernel[0] // 2, 0)}
    node = Node("y", op, ("x",), ("y", "saved") if op == "max_pool2d" else ("y",), attributes=attributes)
    found = Twins(library, 2).check(node, (sample("x", 3, 9, 600),), 1, {}, Order.SAMPLES)
    for each, distance in found.items():
        judge(each, distance)


NETWORKS: dict[str, tuple[str, tuple[int, ...], Method]] = {
    "cnn-small": ("cnn-small", (1, 28, 28), Full()),
    "cnn-small by lora": ("cnn-small", (1, 28, 28), Lora(4, 4)),
    "resnet8": ("resnet8", (3, 16, 16), Full()),
    "ds-cnn": ("ds-cnn", (1, 49, 10), Full()),
    "ds-cnn by lora": ("ds-cnn", (1, 49, 10), Lora(2)),
    "mobilenetv2": ("mobilenetv2-0.35-norms", (3, 32, 32), Full()),
}
NAMES = ["cnn-small", "resnet8", "ds-cnn", *sampled(sorted(set(NETWORKS) - {"cnn-small", "resnet8", "ds-cnn"}), 1)]


@cache
def program_of_network(name: str) -> Program:
    model, shape, method = NETWORKS[name]
    return make_program(model, method, 6, input_shape=shape)


def batch_of(name: str) -> tuple[Array, Array]:
    model, shape, _ = NETWORKS[name]
    rng = np.random.default_rng(2)
    labels = rng.integers(0, zoo.entry(model).classes, 6, dtype=np.int32)
    return rng.standard_normal((6, *shape), dtype=np.float32), labels


@pytest.mark.parametrize("name", NAMES)
def test_only_samples_and_labels_are_fetched_by_numpy(library: Library, name: str) -> None:
    recorder = Recorder(library)
    executor = Executor(program_of_network(name), {}, 0, backend=recorder)
    executor.close()
    assert set(recorder.left_to_numpy) == {"input"}


@pytest.mark.parametrize("name", NAMES)
def test_a_step_of_every_rung_uses_exactly_the_promised_bytes(library: Library, name: str, tmp_path: Path) -> None:
    program = program_of_network(name)
    for rung, plan in enumerate(program.rungs):
        executor = Executor(program, {}, 0, rung, tmp_path, backend=NativeBackend(library, 2))
        measured = executor.measure(*batch_of(name), 0.01).measured_peak_bytes
        executor.close()
        assert measured == plan.promise.peak_bytes, plan.strategy
