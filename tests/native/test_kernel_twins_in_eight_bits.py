"""Adam with moments in eight bits: the parameter as near to 64 bits as numpy's, codes the nearest ones there are."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.native.library import Library
from hedgerow_plans.graph.ir import DType, Node, Tensor
from hedgerow_plans.graph.ops.adaptive import blocks_of
from hedgerow_plans.graph.tiles import STATE_BLOCK_ELEMENTS as BLOCK
from support.gradients import parameter, seeds
from support.native_calls import Made, Twins
from support.twin_tests import compares, judge, state, trained

UPDATED = ("p", "m", "m.scale", "v", "v.scale")
BETA1, BETA2 = 0.9, 0.999
CODE_DISTANCE = 2e-3
"""How far from the middle between two codes, in codes, the farther one may still be taken: rounding in 32 bits."""


def adam8bit(**attributes: float) -> Node:
    clipped = ("factor",) if "factor" in attributes else ()
    given_ones = {name: value for name, value in attributes.items() if name != "factor"}
    return Node("adam8bit", "adam8bit", ("g", "t", *clipped), (), UPDATED, attributes=given_ones)


def tensors_of(size: int) -> dict[str, Tensor]:
    blocks = blocks_of(size)
    return {
        "p": trained("p", size),
        "g": parameter("g", size),
        "t": state("t", dtype=DType.INT32),
        "factor": parameter("factor"),
        "m": state("m", size, dtype=DType.INT8),
        "m.scale": state("m.scale", blocks),
        "v": state("v", size, dtype=DType.UINT8),
        "v.scale": state("v.scale", blocks),
    }


def drawn(size: int, seed: int) -> dict[str, Array]:
    rng, blocks = np.random.default_rng(seed), blocks_of(size)
    return {
        "p": rng.standard_normal(size).astype(np.float32),
        "g": (rng.standard_normal(size) * 10.0 ** rng.integers(-6, 1, size)).astype(np.float32),
        "t": np.array(rng.integers(0, 200), np.int32),
        "factor": np.array(0.25, np.float32),
        "m": rng.integers(-127, 128, size).astype(np.int8),
        "m.scale": (10.0 ** rng.uniform(-6, 1, blocks)).astype(np.float32),
        "v": rng.integers(1, 256, size).astype(np.uint8),
        "v.scale": (10.0 ** rng.uniform(-9, 1, blocks)).astype(np.float32),
    }


def by_block(values: Array) -> Array:
    """Return values as rows of blocks, filled up with zeros."""
    rows = np.zeros((blocks_of(values.size), BLOCK))
    rows.reshape(-1)[: values.size] = values
    return rows


def exact_codes(arrays: Mapping[str, Array], gradient: Array) -> tuple[Array, Array]:
    """Return what the codes would be if they were no whole numbers, block by block."""
    before = by_block(arrays["m"]) / 127
    first = BETA1 * before * abs(before) * arrays["m.scale"][:, np.newaxis] + (1 - BETA1) * by_block(gradient)
    second = BETA2 * (by_block(arrays["v"]) / 255) ** 4 * arrays["v.scale"][:, np.newaxis]
    second += (1 - BETA2) * by_block(gradient) ** 2
    shares = (values / abs(values).max(axis=1, keepdims=True) for values in (first, second))
    signed, positive = shares
    return np.sign(signed) * np.sqrt(abs(signed)) * 127, np.maximum(positive**0.25 * 255, 1)


def check(made: Made, codes: tuple[Array, Array]) -> None:
    judge({"adam8bit": max(made.distance(name) for name in ("p", "m.scale", "v.scale"))})
    for name, exact in zip(("m", "v"), codes, strict=True):
        found = by_block(made.found[name])
        inside = by_block(np.ones_like(made.found[name])) > 0
        assert float(abs(found - exact)[inside].max()) < 0.5 + CODE_DISTANCE
        apart = abs(made.found[name].astype(int) - made.usual[name])
        assert apart.max() <= 1
        assert apart.sum() <= 2 + apart.size // 500, "codes differ from numpy's only where both are as near"


@compares("adam8bit")
@given(size=st.integers(1, 6000), clipping=st.sampled_from(("", "clip", "factor")), decay=st.booleans(), seed=seeds)
def test_a_step(library: Library, *, size: int, clipping: str, decay: bool, seed: int) -> None:
    arrays = drawn(size, seed)
    attributes = {"weight_decay": 0.1} if decay else {}
    node = adam8bit(**attributes, **({clipping: 0.25} if clipping else {}))
    gradient = arrays["g"].astype(np.float64)
    gradient = {"": gradient, "clip": np.clip(gradient, -0.25, 0.25), "factor": 0.25 * gradient}[clipping]
    check(Twins(library, 1).made(node, tensors_of(size), arrays), exact_codes(arrays, gradient))


@pytest.mark.parametrize("size", [BLOCK, 3 * BLOCK + 5])
def test_nothing_to_remember_stays_nothing(library: Library, size: int) -> None:
    arrays = drawn(size, 1)
    arrays["g"][:], arrays["m"][:], arrays["v"][:] = 0, 0, 1
    arrays["m.scale"][:] = arrays["v.scale"][:] = 1.2e-38
    before = arrays["p"].copy()
    found = Twins(library, 1).made(adam8bit(), tensors_of(size), arrays).found
    assert np.array_equal(found["p"], before)
    assert not found["m"].any()
    assert (found["v"] == 1).all()
    assert np.isfinite(found["m.scale"]).all()


def test_what_is_no_number_reaches_its_own_block_only(library: Library) -> None:
    arrays = drawn(3 * BLOCK, 1)
    arrays["g"][BLOCK + 3] = np.nan
    with np.errstate(invalid="ignore"):
        found = Twins(library, 1).made(adam8bit(), tensors_of(3 * BLOCK), arrays).found
    assert np.isnan(found["m.scale"]).tolist() == np.isnan(found["v.scale"]).tolist() == [False, True, False]
    assert np.flatnonzero(np.isnan(found["p"])).tolist() == [BLOCK + 3]
