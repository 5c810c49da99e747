"""Which rung runs next: properties that hold for every ladder and every budget."""

from hypothesis import given
from hypothesis import strategies as some

from hedgerow_agent.trainer.rung import choose_rung, roomiest_fit

ladders = some.lists(some.integers(1, 10_000), min_size=1, max_size=8, unique=True).map(
    lambda peaks: sorted(peaks, reverse=True)
)
budgets = some.one_of(some.none(), some.integers(0, 12_000))


@given(ladders, budgets, some.data())
def test_what_is_chosen_fits_the_budget(peaks: list[int], budget: int | None, data: some.DataObject) -> None:
    current = data.draw(some.one_of(some.none(), some.integers(0, len(peaks) - 1)))
    chosen = choose_rung(peaks, budget, current, data.draw(some.integers(0, 20)))
    if chosen is None:
        assert budget is not None
        assert budget < min(peaks)
    else:
        assert budget is None or peaks[chosen] <= budget


@given(ladders, budgets, some.data())
def test_down_is_immediate_and_no_further_than_needed(
    peaks: list[int], budget: int | None, data: some.DataObject
) -> None:
    current = data.draw(some.integers(0, len(peaks) - 1))
    best = roomiest_fit(peaks, budget)
    if best is not None and best > current:
        assert choose_rung(peaks, budget, current, 0) == best


@given(ladders, budgets, some.data())
def test_up_waits_for_the_hysteresis_and_then_goes_all_the_way(
    peaks: list[int], budget: int | None, data: some.DataObject
) -> None:
    current = data.draw(some.integers(0, len(peaks) - 1))
    patience = data.draw(some.integers(1, 20))
    best = roomiest_fit(peaks, budget)
    if best is not None and best < current:
        assert choose_rung(peaks, budget, current, patience - 1, patience) == current
        assert choose_rung(peaks, budget, current, patience, patience) == best


def test_a_small_ladder_by_hand() -> None:
    peaks = (300, 200, 100)
    assert choose_rung(peaks, None, None, 0) == 0
    assert choose_rung(peaks, 250, None, 0) == 1
    assert choose_rung(peaks, 250, 0, 0) == 1
    assert choose_rung(peaks, 99, 1, 0) is None
    assert choose_rung(peaks, 300, 2, 9, 10) == 2
    assert choose_rung(peaks, 300, 2, 10, 10) == 0
