"""What a plan can do wrong: one rule and one sentence each. Part of the independent check, shared with no planner."""

from dataclasses import dataclass, field
from enum import StrEnum

MOST_VIOLATIONS = 50
"""A plan this wrong is not looked at further; the first sentences say enough."""


class Rule(StrEnum):
    """What a violation is about, for programs and tests; people read the sentence."""

    STRUCTURE = "structure"  # graph, program or step does not hold together
    LIVENESS = "liveness"  # something is used, freed or made at the wrong time
    OVERLAP = "overlap"  # two things share a byte
    PLACEMENT = "placement"  # an offset is misaligned or out of its part of the arena
    PEAK = "peak"  # the promise is not what happens
    BUDGET = "budget"  # more than the device has
    PAGING = "paging"  # page-in without page-out, or of what cannot be paged
    REPETITION = "repetition"  # the body cannot run twice, or something stays behind
    COMPLETENESS = "completeness"  # a node runs never, twice, or in the wrong section
    VALUES = "values"  # a result differs from the keep-all order's
    BATCH = "batch"  # the micro-batches do not make up the batch


@dataclass(frozen=True, slots=True)
class Violation:
    """One way in which a plan or program breaks a rule."""

    rule: Rule
    sentence: str


class TooManyViolations(Exception):  # noqa: N818 - control flow inside the check, not an error anybody sees
    """Ends a check early."""


@dataclass(slots=True)
class Findings:
    """Collects violations up to the limit."""

    where: str
    found: list[Violation] = field(default_factory=list)

    def add(self, rule: Rule, sentence: str) -> None:
        """Note a violation."""
        self.found.append(Violation(rule, f"{self.where}: {sentence}"))
        if len(self.found) >= MOST_VIOLATIONS:
            raise TooManyViolations

    def check(self, condition: bool, rule: Rule, sentence: str) -> bool:
        """Note a violation unless the condition holds; return the condition."""
        if not condition:
            self.add(rule, sentence)
        return condition
