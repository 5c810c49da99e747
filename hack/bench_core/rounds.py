"""Rounds: each runs every contestant of a case once, in processes of their own, one after the other.

A round in which something else used more than a fifth of a processor is thrown out as a whole and run again, a limited
number of times. No round is thrown out for its result.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench_core.timing import Sample
from bench_core.workloads import Workload

MOST_FOREIGN_CORES = 0.2
_TRIES_PER_ROUND = 4

OURS, TORCH, TUNED, NATIVE = "ours", "torch", "torch-tuned", "native"
CONTESTANTS = (OURS, TORCH, TUNED)
WITH_NATIVE = (OURS, NATIVE, TORCH, TUNED)
"""Where the compiled backend is built, it takes part as well."""


@dataclass(frozen=True, slots=True)
class Case:
    """A workload at a number of threads."""

    workload: Workload
    threads: int


Round = dict[str, Sample]
"""What each contestant measured in one round."""

Contest = Callable[[Case, str], Sample]
"""Runs one contestant of a case in a fresh process."""


@dataclass(slots=True)
class Results:
    """The rounds of a case that count, and how many were thrown out."""

    case: Case
    rounds: list[Round] = field(default_factory=list)
    thrown_out: int = 0

    def ratios(self, measure: str, against: str, of: str = OURS) -> list[float]:
        """Return ours / theirs of every round, sorted."""
        return sorted(getattr(each[of], measure) / getattr(each[against], measure) for each in self.rounds)

    @property
    def has_native(self) -> bool:
        """Whether the compiled backend took part in every round."""
        return bool(self.rounds) and all(NATIVE in each for each in self.rounds)

    def median(self, measure: str, contestant: str) -> float:
        """Return the median of what one contestant measured."""
        values: list[float] = [getattr(each[contestant], measure) for each in self.rounds]
        return statistics.median(values)


def run_rounds(
    cases: Sequence[Case],
    rounds: int,
    contest: Contest,
    tell: Callable[[Case, Round, bool], None],
    contestants: Sequence[str] = CONTESTANTS,
) -> list[Results]:
    """Run so many rounds of every case, all cases of a round before the next round."""
    results = [Results(case) for case in cases]
    for number in range(1, rounds + 1):
        for result in results:
            while len(result.rounds) < number and result.thrown_out < _TRIES_PER_ROUND * rounds:
                _run_round(result, contest, tell, contestants)
    return results


def _run_round(
    result: Results, contest: Contest, tell: Callable[[Case, Round, bool], None], contestants: Sequence[str]
) -> None:
    each = {contestant: contest(result.case, contestant) for contestant in contestants}
    quiet = all(sample.foreign_cores <= MOST_FOREIGN_CORES for sample in each.values())
    tell(result.case, each, quiet)
    if quiet:
        result.rounds.append(each)
    else:
        result.thrown_out += 1
