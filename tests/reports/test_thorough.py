"""The report of a thorough run says what was run, what came of it and what was measured."""

from thorough.checks import CHECKS
from thorough.outcome import Outcome, Surroundings, find_closing_line, find_figures, render

HERE = Surroundings("2026-01-02", "abc", "2 cores", "3.11")


def outcome(exit_code: int = 0, figures: tuple[tuple[str, str], ...] = ()) -> Outcome:
    return Outcome("name", "something holds", "make it", exit_code, 1.5, "3 passed", figures)


def test_figures_are_collected_also_behind_the_dots_of_pytest() -> None:
    output = "noise\nFIGURE agent installation: 131.2 MB\n.FIGURE cold start: 3.2 s\nnot a FIGURE here: 1\n"

    assert find_figures(output) == (("agent installation", "131.2 MB"), ("cold start", "3.2 s"))


def test_the_closing_line_is_the_last_one_that_says_something() -> None:
    assert find_closing_line("first\n12 passed in 3 s\n\n  \n") == "12 passed in 3 s"
    assert find_closing_line("") == ""


def test_a_failed_check_is_counted_and_named() -> None:
    report = render(HERE, [outcome(), outcome(exit_code=2)])

    assert "1 of 2 checks passed." in report
    assert "name: FAILED (2)" in report


def test_figures_stand_in_a_table_below_their_command() -> None:
    report = render(HERE, [outcome(figures=(("size", "131 MB"),))])

    assert report.index("make it") < report.index("| size | 131 MB |")


def test_every_check_has_a_name_of_its_own() -> None:
    names = [check.name for check in CHECKS]

    assert len(set(names)) == len(names)
