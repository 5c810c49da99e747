"""Orders that are computed: every number once, none likelier anywhere, and no memory for any of it."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_agent.core.data import Batches, split
from hedgerow_agent.core.data.orders import Shuffled
from hedgerow_agent.core.kernels.call import Array

POWERS = [2**power + more for power in range(1, 17) for more in (-1, 0, 1)]


def far_from_chance(found: Array) -> float:
    """Return how many deviations the chi-square of equally likely cells is off its mean."""
    expected, freedom = found.sum() / found.size, found.size - 1
    return float((((found - expected) ** 2).sum() / expected - freedom) / math.sqrt(2 * freedom))


@given(st.integers(1, 3000) | st.sampled_from([*POWERS, 10**5]), st.integers(0, 2**63))
def test_an_order_has_every_number_once(count: int, seed: int) -> None:
    assert np.array_equal(np.sort(Shuffled.of(count, seed)[:]), np.arange(count))


@given(st.integers(1, 500), st.integers(0, 99), st.data())
def test_a_piece_of_an_order_is_what_the_whole_has_there(count: int, seed: int, data: st.DataObject) -> None:
    order = Shuffled.of(count, seed)
    whole = order[:]
    first, end = sorted(data.draw(st.tuples(st.integers(0, count), st.integers(0, count))))
    stretch = order.stretch(first, end)
    assert len(stretch) == end - first
    assert np.array_equal(order[first:end], whole[first:end])
    assert np.array_equal(stretch[:], whole[first:end])
    positions = np.array(data.draw(st.lists(st.integers(0, max(0, end - first - 1)), max_size=9)), np.intp)
    if end > first:
        assert np.array_equal(stretch[positions], whole[first:end][positions])


def test_an_order_is_the_same_on_every_machine() -> None:
    assert Shuffled.of(10, 1, "split")[:].tolist() == [7, 3, 4, 0, 9, 1, 2, 8, 5, 6]
    assert Shuffled.of(10**12, 1, "split")[:3].tolist() == [931597883300, 83288307385, 666100556721]


@pytest.mark.parametrize("count", [3, 7, 16])
def test_no_number_is_likelier_anywhere_or_after_another(count: int) -> None:
    places, neighbours = np.zeros((count, count)), np.zeros((count, count))
    for seed in range(1000):
        order = Shuffled.of(count, seed, "chance")[:]
        places[np.arange(count), order] += 1
        neighbours[order[:-1], order[1:]] += 1
    assert far_from_chance(places) < 4
    assert far_from_chance(neighbours[~np.eye(count, dtype=bool)]) < 4


@pytest.mark.parametrize("count", [1000, 65_536, 99_991])
def test_a_long_order_looks_like_chance(count: int) -> None:
    order, other = Shuffled.of(count, 3)[:], Shuffled.of(count, 4)[:]
    cells, _, _ = np.histogram2d(np.arange(count), order, bins=10)
    assert far_from_chance(cells) < 4
    for one, two in ((np.arange(count), order), (order[:-1], order[1:]), (order, other), (order[:-7], order[7:])):
        assert abs(np.corrcoef(one, two)[0, 1]) < 4 / math.sqrt(count)
    assert abs(np.abs(np.diff(order)).mean() / count - 1 / 3) < 1 / math.sqrt(count)
    assert (order == np.arange(count)).sum() + (order == other).sum() < 12


def test_splits_and_batches_take_no_memory_however_many_rows_there_are() -> None:
    count = 10**9
    tracemalloc.start()
    try:
        parts = split(count, seed=1)
        batches = Batches(parts.train, 32, seed=1)
        rows = [batches.rows(step) for step in (0, batches.per_epoch - 1, batches.per_epoch, 7 * batches.per_epoch + 5)]
        judged = parts.validation[10**8 : 10**8 + 32]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    seen = np.concatenate([*rows, judged])
    assert seen.min() >= 0
    assert seen.max() < count
    assert peak < 96 * 1024  # what computing a thousand rows takes
