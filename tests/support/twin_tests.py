"""What tests that compare a compiled kernel with its numpy twin have in common: bounds, and saying what they compare.

A test names its operators in a decorator, in plain words that the guard reads; whether it really compared them is
looked at when it is over.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

import pytest
from hypothesis import strategies as st

from hedgerow_plans.graph.ir import DType, Order, Role, Tensor
from support.native_calls import COMPARED

Test = TypeVar("Test", bound=Callable[..., None])

orders = st.sampled_from((Order.SAMPLES, Order.PIXELS, Order.CHANNELS))

MOST = {
    "gelu": 1e-6,
    "tanh": 4e-7,
    "sigmoid": 4e-7,
    "softmax": 4e-7,
    "cross_entropy": 2e-6,
    "mse": 1e-6,
    "mse_grad": 4e-7,
    "bce": 1e-6,
    "bce_grad": 4e-7,
    "sum_squares": 1e-6,
    "clip_factor": 4e-7,
    "batch_norm": 4e-6,
    "layer_norm": 4e-6,
    "rms_norm": 4e-6,
    "group_norm": 2e-6,
    "group_norm_grad_input": 4e-6,
    "group_norm_grad_weight": 2e-6,
    "weight_standardisation": 2e-6,
    "weight_standardisation_grad": 4e-6,
    "standardise": 1e-6,
    "standardise_grad": 1e-6,
    "update_standardisation": 1e-6,
    "upsample_bilinear": 1e-6,
    "upsample_bilinear_grad": 2e-6,
    "adam": 1e-6,
    "adam8bit": 1e-6,
    "descend": 4e-7,
    "accumulate_slope": 4e-7,
    "conv2d": 2e-6,
    "conv2d_grad_input": 2e-6,
    "conv2d_grad_weight": 2e-6,
    "sgd_conv2d": 2e-6,
}
"""The largest distance to numpy in 64 bits beyond twice that of numpy in 32, of the largest number of a result or of 1.

Of operators that are not named it is the following."""
MOST_OF_OTHERS = 4e-6

_ANY = ""
_DECLARED: dict[str, Mapping[str, frozenset[str]]] = {}


def trained(name: str, *shape: int) -> Tensor:
    """Return a tensor that steps change."""
    return Tensor(name, shape, batched=False, role=Role.TRAINABLE)


def state(name: str, *shape: int, dtype: DType = DType.FLOAT32) -> Tensor:
    """Return a tensor of an optimiser."""
    return Tensor(name, shape, dtype, batched=False, role=Role.STATE)


def judge(distances: Mapping[str, float]) -> None:
    """Expect every operator within its bound."""
    for op, distance in distances.items():
        assert distance <= MOST.get(op, MOST_OF_OTHERS), (op, distance)


def compares(*ops: str) -> Callable[[Test], Test]:
    """Say which operators a test compares."""

    def declare(test: Test) -> Test:
        _DECLARED[test.__name__] = {_ANY: frozenset(ops)}
        return test

    return declare


def compares_each(**ops: tuple[str, ...]) -> Callable[[Test], Test]:
    """Let a test run once for each operator, its parameter `op`, and say what is compared along with it."""

    def declare(test: Test) -> Test:
        _DECLARED[test.__name__] = {op: frozenset((op, *more)) for op, more in ops.items()}
        marked: Test = pytest.mark.parametrize("op", ops)(test)
        return marked

    return declare


def not_compared(name: str, parameters: Mapping[str, object]) -> frozenset[str]:
    """Return what a test has said that it compares, and has not since `COMPARED` was emptied."""
    declared = _DECLARED.get(name, {})
    return declared.get(str(parameters.get("op", _ANY)), declared.get(_ANY, frozenset())) - COMPARED
