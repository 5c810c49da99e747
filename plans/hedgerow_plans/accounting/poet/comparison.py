"""POET's facts beside ours: nodes, bytes and joules of its networks, rebuilt by its rules."""

from collections.abc import Iterator

from hedgerow_plans.accounting import published
from hedgerow_plans.accounting.comparison import Comparison
from hedgerow_plans.accounting.poet.networks import NETWORKS, problem
from hedgerow_plans.accounting.published import PoetNetwork
from hedgerow_plans.bare import BareProblem
from hedgerow_plans.planning.abstract.bare import bare_workload


def poet() -> tuple[Comparison, ...]:
    """Return every fact that was recorded."""
    return tuple(row for name, facts in published.POET_NETWORKS.items() for row in _rows(name, facts))


def joules(problem: BareProblem) -> float:
    """Return what a step without overhead costs."""
    return sum(problem.cost) / 10**12


def _rows(name: str, facts: PoetNetwork) -> Iterator[Comparison]:
    problems = {chip: problem(name, chip) for chip in facts.joules}
    work = bare_workload(next(iter(problems.values())))
    forward = sum(layer.bytes for layer in NETWORKS[name]())
    figures = (
        ("nodes", "", facts.nodes, work.nodes),
        ("forward", "B", facts.forward_bytes, forward),
        ("working set", "B", facts.working_set_bytes, work.floor_bytes),
        ("keep-all", "B", facts.keep_all_bytes, work.keep_all_bytes),
    )
    for what, unit, recorded, ours in figures:
        yield Comparison(f"{name} {what}", unit, recorded, ours, published.POET_SOURCE)
    for chip, recorded_joules in facts.joules.items():
        ours_joules = joules(problems[chip])
        yield Comparison(f"{name} on {chip}", "J", float(recorded_joules), ours_joules, published.POET_SOURCE)
