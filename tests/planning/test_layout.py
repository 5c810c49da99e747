"""Offsets never overlap in space and time, and the bound is what it says."""

from hypothesis import given
from hypothesis import strategies as st

from hedgerow_plans.planning.layout import Interval, lay_out, max_live


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    start = draw(st.integers(0, 30))
    return Interval(64 * draw(st.integers(1, 20)), start, start + draw(st.integers(1, 12)))


def live_at(items: list[Interval], time: int) -> int:
    return sum(item.bytes for item in items if item.start <= time < item.end)


@given(st.lists(intervals(), max_size=25))
def test_no_two_intervals_share_a_byte_while_both_live(items: list[Interval]) -> None:
    layout = lay_out(items)
    placed = list(zip(items, layout.offsets, strict=True))
    for index, (one, low) in enumerate(placed):
        for other, high in placed[:index]:
            apart_in_time = one.end <= other.start or other.end <= one.start
            assert apart_in_time or low + one.bytes <= high or high + other.bytes <= low


@given(st.lists(intervals(), max_size=25))
def test_top_is_the_highest_byte_and_never_below_the_bound(items: list[Interval]) -> None:
    layout = lay_out(items)
    assert layout.bound == max((live_at(items, time) for time in range(50)), default=0)
    assert layout.top == max((at + item.bytes for item, at in zip(items, layout.offsets, strict=True)), default=0)
    assert layout.top >= layout.bound
    assert all(offset % 64 == 0 for offset in layout.offsets)


def test_bytes_are_used_again_once_given_up() -> None:
    chain = [Interval(64, time, time + 2) for time in range(10)]
    assert lay_out(chain).top == max_live(chain) == 128


def test_a_long_life_does_not_split_the_space_of_short_ones() -> None:
    items = [Interval(64, 0, 2), Interval(64, 1, 10), Interval(128, 3, 5), Interval(128, 6, 9)]
    assert lay_out(items).top == 192


def test_running_out_of_time_still_gives_a_layout() -> None:
    items = [Interval(64, 0, 3), Interval(128, 1, 4), Interval(64, 2, 6), Interval(192, 3, 7)]
    assert len(lay_out(items, keep_going=lambda: False).offsets) == len(items)


def test_nothing_to_place_needs_nothing() -> None:
    assert lay_out([]).top == 0
