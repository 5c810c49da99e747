"""Bare problems as workloads, and operation sequences as the steps that a bare plan is made of."""

from collections.abc import Sequence, Set

from hedgerow_plans.bare import BareProblem, Step
from hedgerow_plans.planning.abstract.workload import Workload

RECOMPUTE = "recompute"
PAGE = "page"
OPTIMAL, GREEDY, KEEP_ALL, POET = "optimal", "greedy", "keep-all", "poet"
EVICTING = ("melon", "sage", "dtr")
STRATEGIES = (OPTIMAL, GREEDY, KEEP_ALL, *EVICTING, POET)
"""Those that make sense without a training graph; the segments of sqrt(n) and the updates of TTE are not known here."""
TECHNIQUES = frozenset({RECOMPUTE, PAGE})


def bare_workload(problem: BareProblem, techniques: Set[str] = TECHNIQUES) -> Workload:
    """Look at a bare problem the way the search does; tensor and node have the same number."""
    nodes = len(problem.bytes)
    return Workload(
        sizes=problem.bytes,
        pages=problem.pages if PAGE in techniques else (None,) * nodes,
        reads=problem.inputs,
        makes=tuple((node,) for node in range(nodes)),
        costs=problem.cost,
        times=problem.time,
        scratch=(0,) * nodes,
        fences=(nodes,) * nodes if RECOMPUTE in techniques else tuple(range(nodes)),
    )


def bare_steps(work: Workload, codes: Sequence[int]) -> list[Step]:
    """Return a sequence with its frees and page-outs."""
    paged = {~code for code in codes if code < 0}
    deaths: dict[int, list[int]] = {}
    for tensor, last in _lives(work, codes):
        deaths.setdefault(last, []).append(tensor)
    steps: list[Step] = []
    for position, code in enumerate(codes):
        steps.append(("compute", code) if code >= 0 else ("page_in", ~code))
        if code in paged:
            steps.append(("page_out", code))
            paged.remove(code)
        steps += [("free", tensor) for tensor in deaths.get(position, ())]
    return steps


def _lives(work: Workload, codes: Sequence[int]) -> list[tuple[int, int]]:
    """Return each life as its tensor and the position of its last use."""
    current: dict[int, int] = {}
    last: list[tuple[int, int]] = []
    for position, code in enumerate(codes):
        for tensor in work.reads[code] if code >= 0 else ():
            last[current[tensor]] = (tensor, position)
        for tensor in work.makes[code] if code >= 0 else (~code,):
            current[tensor] = len(last)
            last.append((tensor, position))
    return last
