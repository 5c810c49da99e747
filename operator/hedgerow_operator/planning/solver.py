"""The solver behind `optimal`, where it is installed; without it ladders come from the strategies that need none.

Which solver planned is part of what a program depends on: another one, or none, may find another plan.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from hedgerow_plans.planning.ladder import Searching
from hedgerow_plans.planning.strategies import SEQUENCES, Offering

EXTRA = "planner"
NAMES = (*SEQUENCES, "poet", "optimal")
"""Every strategy for ladders; the last two need the solver."""
_log = logging.getLogger(__name__)
ABSENT = (
    f"The solver is not installed, so ladders come from the strategies that need none, without `optimal`: they may "
    f"cost more energy, and their gap is measured against a plan without overhead. Add it with: "
    f"pip install 'hedgerow[{EXTRA}]'"
)


def solver() -> str:
    """Return name and version of the solver, or nothing if there is none."""
    try:
        return f"highspy {version('highspy')}"
    except PackageNotFoundError:
        return ""


def say_how_planning_is_done() -> None:
    """Log once, when the operator starts, whether there is a solver."""
    if found := solver():
        _log.info("Planning with %s.", found)
    else:
        _log.warning(ABSENT)


@dataclass(frozen=True, slots=True)
class Planners:
    """Who is asked for a ladder: strategies that give all they have at once, and those that search for each plan."""

    quick: Mapping[str, Offering]
    searching: tuple[Searching, ...] = ()


def planners(name: str | None = None) -> Planners:
    """Return everything there is, or the strategy of a name alone; `optimal` starts from what all others found.

    Raise ModuleNotFoundError if the strategy needs the solver and there is none.
    """
    if name is None and not solver():
        return Planners(SEQUENCES)
    if name is not None and name in SEQUENCES:
        return Planners({name: SEQUENCES[name]})
    from hedgerow_plans.planning.strategies import optimal, poet  # noqa: PLC0415 - they need the solver

    return Planners({}, (poet.plan,)) if name == poet.NAME else Planners(SEQUENCES, (optimal.plan,))
