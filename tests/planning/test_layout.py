"""Offsets never overlap in space and time, the bound is what it says, and the search proves what it claims."""

import json
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow_operator.cli import hedgerow
from hedgerow_plans.graph.ir import ALIGNMENT_BYTES
from hedgerow_plans.planning.layout import Effort, Interval, lay_out, max_live
from hedgerow_plans.planning.layout_problem import MOST_BYTES, SCHEMA
from hedgerow_plans.planning.lowering import lower
from hedgerow_plans.planning.packing import search
from hedgerow_plans.planning.sequence import straight
from hedgerow_plans.planning.strategies import sqrt_n
from support.networks import UNHURRIED, Case, cases

UNAIDED = 10_000
"""Placements that are plenty for instances small enough to be tried out in every order."""


@st.composite
def intervals(draw: st.DrawFn, latest: int = 30, longest: int = 12) -> Interval:
    start = draw(st.integers(0, latest))
    return Interval(64 * draw(st.integers(1, 20)), start, start + draw(st.integers(1, longest)))


@st.composite
def exact_intervals(draw: st.DrawFn) -> Interval:
    return replace(draw(intervals(latest=8)), spare=draw(st.integers(0, 63)))


def live_at(items: list[Interval], time: int) -> int:
    return sum(item.bytes for item in items if item.start <= time < item.end)


def overlaps(items: list[Interval], offsets: tuple[int, ...]) -> bool:
    placed = list(zip(items, offsets, strict=True))
    return any(
        one.start < other.end and other.start < one.end and low < high + other.bytes and high < low + one.bytes
        for index, (one, low) in enumerate(placed)
        for other, high in placed[:index]
    )


def lowest_top(items: list[Interval]) -> int:
    """Rest every interval on those before it, in every order; one of them is a lowest packing."""
    tops = []
    for order in permutations(items):
        ends: list[int] = []
        for index, item in enumerate(order):
            below = [ends[at] for at in range(index) if order[at].start < item.end and item.start < order[at].end]
            ends.append(item.bytes + max(below, default=0))
        tops.append(max(ends))
    return min(tops)


@settings(deadline=None)
@given(st.lists(intervals(), max_size=25))
def test_no_two_intervals_share_a_byte_while_both_live(items: list[Interval]) -> None:
    assert not overlaps(items, lay_out(items).offsets)


@settings(deadline=None)
@given(st.lists(intervals(), max_size=25))
def test_top_is_the_highest_byte_and_never_below_the_bound(items: list[Interval]) -> None:
    layout = lay_out(items)
    assert layout.bound == max((live_at(items, time) for time in range(50)), default=0)
    assert layout.top == max((at + item.bytes for item, at in zip(items, layout.offsets, strict=True)), default=0)
    assert layout.top >= layout.proven >= layout.bound
    assert all(offset % 64 == 0 for offset in layout.offsets)


@settings(deadline=None)
@given(st.lists(exact_intervals(), min_size=1, max_size=12))
def test_what_is_spare_counts_for_the_topmost_alone(items: list[Interval]) -> None:
    layout = lay_out(items, effort=Effort(enough=1))
    tops = [at + item.bytes - item.spare for item, at in zip(items, layout.offsets, strict=True)]
    live = [[item for item in items if item.start <= time < item.end] for time in range(30)]
    assert layout.bound == max(sum(one.bytes for one in now) - max(one.spare for one in now) for now in live if now)
    assert layout.top == max(tops) >= layout.proven >= layout.bound
    assert not overlaps(items, layout.offsets)
    assert all(offset % 64 == 0 for offset in layout.offsets)


def test_a_budget_that_ends_between_two_aligned_bytes_is_used_to_its_end() -> None:
    items = [Interval(128, 0, 4), Interval(64, 0, 2, spare=24), Interval(64, 1, 4), Interval(64, 2, 4, spare=8)]
    assert lay_out(items).top == lay_out(items, effort=Effort(enough=248)).top == 248
    assert lay_out(items[::-1], effort=Effort(enough=248)).top == 248


@settings(deadline=None)
@given(st.lists(intervals(latest=5, longest=4), min_size=1, max_size=6))
def test_the_search_finds_the_lowest_top_and_proves_it(items: list[Interval]) -> None:
    lowest = lowest_top(items)
    found = search(items, 1, sum(item.bytes for item in items) + 1, UNAIDED, lambda: True)
    assert found.offsets is not None
    assert not overlaps(items, found.offsets)
    assert max(at + item.bytes for item, at in zip(items, found.offsets, strict=True)) == lowest == found.proven
    assert lay_out(items).top == lowest


@UNHURRIED
@given(cases())
def test_real_lifetimes_meet_the_bound(case: Case) -> None:
    for problem in case.problems():
        sequences = [straight(problem)]
        if len(forward := sqrt_n.forward_nodes(problem)) > 3:
            sequences.append(sqrt_n.segmented(problem, forward, 3))
        for sequence in sequences:
            plan = lower(problem, sequence, "")
            assert plan.promise.peak_bytes - plan.bounds.max_live_bytes < ALIGNMENT_BYTES


def test_nested_lifetimes_of_a_deep_network_meet_the_bound() -> None:
    chance = Random(4)
    sizes = [64 * chance.randint(1, 200) for _ in range(450)]
    kept = [Interval(size, at, 300 - at) for at, size in enumerate(sizes[:150])]
    brief = [Interval(size, at, at + chance.randint(1, 4)) for at, size in enumerate(sizes[150:])]
    assert lay_out(kept + brief).optimal


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


@pytest.fixture
def problem_file(tmp_path: Path) -> Path:
    return tmp_path / "tensors.json"


def run_layout(file: Path, *options: str) -> Result:
    return CliRunner().invoke(hedgerow, ["layout", str(file), *options])


def as_problem(items: list[Interval]) -> str:
    tensors = [
        {"name": f"t{number}", "bytes": item.bytes, "start": item.start, "end": item.end}
        for number, item in enumerate(items)
    ]
    return json.dumps({"schema": SCHEMA, "tensors": tensors})


def test_the_command_places_tensors_of_a_file(problem_file: Path) -> None:
    items = [Interval(100, 0, 2), Interval(7, 1, 10), Interval(128, 3, 5), Interval(1, 6, 9)]
    problem_file.write_text(as_problem(items))
    result = run_layout(problem_file, "-o", "json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.output)
    assert answer.keys() == {"top", "bound", "offsets"}
    assert answer["top"] == answer["bound"] == 135
    assert not overlaps(items, tuple(answer["offsets"]))
    assert "top 135, live at once 135; nothing lower exists" in run_layout(problem_file).output


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is not JSON in ASCII"),
        ("[]", "is a list of 0; expected an object"),
        ('{"tensors": []}', "lacks or has too much of 'schema'"),
        ('{"schema": "v9", "tensors": []}', f"is 'v9'; expected '{SCHEMA}'"),
        (as_problem([Interval(-1, 0, 1)]), "tensors[0].bytes is -1; expected a whole number from 0"),
        (as_problem([Interval(1, 0, 1), Interval(1, 4, 3)]), "tensors[1] (t1) lives from 4 until before 3"),
        (as_problem([Interval(1, 0, 1)]).replace("1,", "1.5,", 1), "bytes is 1.5; expected a whole number"),
        (as_problem([Interval(1, 0, 1)]).replace('"t0"', "7"), "name is 7; expected a text"),
    ],
)
def test_a_bad_problem_is_a_sentence_and_exit_code_2(problem_file: Path, text: str, sentence: str) -> None:
    problem_file.write_text(text)
    result = run_layout(problem_file)
    assert result.exit_code == 2
    assert sentence in result.output
    assert str(problem_file) in result.output


def test_a_file_over_the_limit_is_refused_before_it_is_read(problem_file: Path) -> None:
    with problem_file.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    result = run_layout(problem_file)
    assert result.exit_code == 2
    assert f"has {MOST_BYTES + 1} bytes; at most {MOST_BYTES} are accepted" in result.output


def test_a_file_that_is_not_there_is_a_sentence(problem_file: Path) -> None:
    result = run_layout(problem_file)
    assert result.exit_code == 2
    assert "cannot be read: No such file or directory" in result.output
