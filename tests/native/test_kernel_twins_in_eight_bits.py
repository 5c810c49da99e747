"""Adam with moments in eight bits: the parameter as near to 64 bits as numpy's, codes the nearest ones there are."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import pytest
from hypothesis import example, given
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
ROUNDING = 24 * 2.0**-24
"""What 32 bits may be off, of what is added up and of the largest sum in a block: 24 roundings of half a unit.

A second moment and its scale take 15 each (a code's share is rounded twice and counts four times), their quotient, its
roots and the factor, in fourth powers, 11: 41 of 2 * 24. A first moment takes fewer, but its sums may cancel.
"""


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


@dataclass(frozen=True)
class Moment:
    """A moment in 64 bits before it becomes codes, in blocks: shares of the largest size in a block."""

    shares: Array
    slack: Array  # how far a share may be off in 32 bits
    largest: int  # the code of a share of 1
    power: int

    @classmethod
    def of(cls, kept: Array, added: Array, largest: int, power: int) -> Self:
        """Add what is kept of a moment and what a gradient adds to it, which may cancel."""
        sizes, values = abs(kept) + abs(added), kept + added
        scale = abs(values).max(axis=1, keepdims=True)
        shares = values / scale
        return cls(shares, ROUNDING * (sizes + abs(shares) * sizes.max(axis=1, keepdims=True)) / scale, largest, power)

    def codes(self) -> Array:
        """Return what the codes would be if they were no whole numbers."""
        sizes: Array = abs(self.shares) ** (1 / self.power) * self.largest
        return np.sign(self.shares) * sizes

    def shares_of(self, codes: Array) -> Array:
        """Return what codes stand for, also such as are no whole numbers."""
        sizes: Array = abs(codes / self.largest) ** self.power
        return np.sign(codes) * sizes


def exact_moments(arrays: Mapping[str, Array], gradient: Array) -> dict[str, Moment]:
    before, added = by_block(arrays["m"]) / 127, by_block(gradient)
    first = BETA1 * before * abs(before) * arrays["m.scale"][:, np.newaxis]
    second = BETA2 * (by_block(arrays["v"]) / 255) ** 4 * arrays["v.scale"][:, np.newaxis]
    return {
        "m": Moment.of(first, (1 - BETA1) * added, 127, 2),
        "v": Moment.of(second, (1 - BETA2) * added**2, 255, 4),
    }


def check(made: Made, moments: Mapping[str, Moment]) -> None:
    judge({"adam8bit": max(made.distance(name) for name in ("p", "m.scale", "v.scale"))})
    for name, exact in moments.items():
        found, usual = by_block(made.found[name]), by_block(made.usual[name])
        inside = by_block(np.ones_like(made.found[name])) > 0
        codes = np.maximum(exact.codes(), 1) if name == "v" else exact.codes()
        assert float(abs(found - codes)[inside].max()) < 0.5 + CODE_DISTANCE
        assert abs(found - usual).max() <= 1
        from_the_middle = abs(exact.shares - exact.shares_of((found + usual) / 2))
        as_near = (found == usual) | (from_the_middle <= exact.slack)
        assert as_near.all(), "codes differ from numpy's only where both are as near"


@compares("adam8bit")
@example(size=415, clipping="", decay=True, seed=48178)  # six codes lie in the middle
@given(size=st.integers(1, 6000), clipping=st.sampled_from(("", "clip", "factor")), decay=st.booleans(), seed=seeds)
def test_a_step(library: Library, *, size: int, clipping: str, decay: bool, seed: int) -> None:
    arrays = drawn(size, seed)
    attributes = {"weight_decay": 0.1} if decay else {}
    node = adam8bit(**attributes, **({clipping: 0.25} if clipping else {}))
    gradient = arrays["g"].astype(np.float64)
    gradient = {"": gradient, "clip": np.clip(gradient, -0.25, 0.25), "factor": 0.25 * gradient}[clipping]
    check(Twins(library, 1).made(node, tensors_of(size), arrays), exact_moments(arrays, gradient))


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
