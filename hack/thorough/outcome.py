"""What a check came to, and how a row of outcomes reads as a report. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_FIGURE = re.compile(r"^\s*\.?FIGURE (?P<name>[^:]+): (?P<value>.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One check that ran: `closing_line` is the last thing it said."""

    name: str
    shows: str
    command: str
    exit_code: int
    seconds: float
    closing_line: str
    figures: tuple[tuple[str, str], ...]

    @property
    def passed(self) -> bool:
        """Whether the promise held."""
        return self.exit_code == 0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where and on what the checks ran."""

    date: str
    commit: str
    machine: str
    python: str


def find_figures(output: str) -> tuple[tuple[str, str], ...]:
    """Return what a check measured, in the order in which it was printed."""
    return tuple((found["name"], found["value"]) for found in _FIGURE.finditer(output))


def find_closing_line(output: str) -> str:
    """Return the last line that says something."""
    return next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "")


def render(surroundings: Surroundings, outcomes: Iterable[Outcome]) -> str:
    """Return the report as Markdown."""
    rows = list(outcomes)
    failed = sum(not outcome.passed for outcome in rows)
    verdict = f"{len(rows) - failed} of {len(rows)} checks passed."
    lines = [
        f"# Thorough run of {surroundings.date}",
        "",
        f"Commit {surroundings.commit}, {surroundings.machine}, Python {surroundings.python}. {verdict}",
    ]
    for outcome in rows:
        lines += ["", f"## {outcome.name}: {'passed' if outcome.passed else f'FAILED ({outcome.exit_code})'}", ""]
        lines += [f"Shows: {outcome.shows}.", "", f"    {outcome.command}", f"    {outcome.closing_line}", ""]
        lines += [f"{outcome.seconds:.1f} s."]
        if outcome.figures:
            lines += [
                "",
                "| figure | value |",
                "|---|---|",
                *(f"| {name} | {value} |" for name, value in outcome.figures),
            ]
    return "\n".join(lines) + "\n"
