"""The solver behind `optimal`, where it is installed; without it ladders come from the strategies that need none.

Which solver planned is part of what a program depends on: another one, or none, may find another plan.
"""

import logging
from importlib.metadata import PackageNotFoundError, version

from hedgerow_plans.planning.strategies import Strategy

EXTRA = "planner"
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


def searching() -> tuple[Strategy, ...]:
    """Return the strategies that search with the solver, for `build_program`."""
    if not solver():
        return ()
    from hedgerow_plans.planning.strategies import optimal  # noqa: PLC0415 - needs the solver

    return (optimal.plan,)
