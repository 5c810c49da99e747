"""Planning bare problems: read a file, search within a time limit, check the plan independently, say it in JSON.

`plan_bare` is the function for people who have a problem in memory; `read_problem` reads one from a file.
"""

import json
import time
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

from hedgerow_operator.planning.pair import search_in_pair, time_limit
from hedgerow_plans.bare import MAX_FILE_BYTES, BadProblem, BareProblem, Step, parse_problem
from hedgerow_plans.planning.abstract.bare import (
    EVICTING,
    GREEDY,
    KEEP_ALL,
    OPTIMAL,
    POET,
    TECHNIQUES,
    bare_steps,
    bare_workload,
)
from hedgerow_plans.planning.abstract.workload import Workload
from hedgerow_plans.planning.optimal.leanest import leanest
from hedgerow_plans.planning.optimal.search import Options, Search, Standing, search
from hedgerow_plans.planning.optimal.timeline import Timeline
from hedgerow_plans.planning.strategies import dtr, melon, poet, sage
from hedgerow_plans.verify_bare import verify_bare

DEFAULT_TIME_LIMIT_SECONDS = 10.0
_REFUSAL_SECONDS = 5.0
_EVICTING = dict(zip(EVICTING, (melon.schedule, sage.schedule, dtr.schedule), strict=True))


@dataclass(frozen=True, slots=True)
class Request:
    """What is wanted of a bare problem."""

    budget_bytes: int
    deadline_factor: float | None = None
    techniques: Set[str] = TECHNIQUES
    strategy: str = OPTIMAL
    time_limit_seconds: float = DEFAULT_TIME_LIMIT_SECONDS
    tolerance: float = Options().tolerance  # a gap at which nobody wants to wait for a smaller one
    seed: int = 0
    reproducible: bool = False  # one process, moves counted instead of seconds: the same plan every time


@dataclass(frozen=True, slots=True)
class BarePlan:
    """A plan that the independent check passed."""

    cost: int
    bound: int
    no_overhead_cost: int
    peak_bytes: int
    seconds: float
    steps: tuple[Step, ...]

    @property
    def gap(self) -> float:
        """How far the cost may be from the optimum, in parts of the bound."""
        return (self.cost - self.bound) / self.bound if self.bound else float(self.cost > 0)

    @property
    def overhead_gap(self) -> float:
        """Which part of the overhead is not proven to be necessary."""
        overhead = self.cost - self.no_overhead_cost
        return (self.cost - self.bound) / overhead if overhead else 0.0

    def document(self) -> dict[str, object]:
        """Return it as the command prints it."""
        return {
            "feasible": True,
            "cost": self.cost,
            "bound": self.bound,
            "gap": self.gap,
            "overhead_gap": self.overhead_gap,
            "peak_bytes": self.peak_bytes,
            "seconds": round(self.seconds, 3),
            "steps": [list(step) for step in self.steps],
        }


@dataclass(frozen=True, slots=True)
class BareInfeasible:
    """No plan was found; `floor_bytes` is proven, `needed_bytes` has a verified plan."""

    floor_bytes: int
    needed_bytes: int | None
    reason: str

    def document(self) -> dict[str, object]:
        """Return it as the command prints it."""
        needed = {} if self.needed_bytes is None else {"needed_bytes": self.needed_bytes}
        return {"feasible": False, "floor_bytes": self.floor_bytes, **needed, "reason": self.reason}


def read_problem(file: Path) -> BareProblem:
    """Read a problem; raise BadProblem with a sentence. A file that is too large is not even read."""
    try:
        size = file.stat().st_size
        if size > MAX_FILE_BYTES:
            raise BadProblem(f"{file} has {size} bytes; at most {MAX_FILE_BYTES} are read. Split the graph.")
        document = json.loads(file.read_bytes())
    except OSError as problem:
        raise BadProblem(f"{file} cannot be read: {problem.strerror}.") from problem
    except (ValueError, RecursionError) as problem:
        raise BadProblem(f"{file} is not JSON: {problem}.") from problem
    return parse_problem(document)


def plan_bare(
    problem: BareProblem, request: Request, report: Callable[[Standing], None] = lambda _standing: None
) -> BarePlan | BareInfeasible:
    """Plan a bare problem; what is returned was checked by a replay that shares nothing with the search."""
    began = time.monotonic()
    work = bare_workload(problem, request.techniques)
    deadline = None if request.deadline_factor is None else problem.deadline(request.deadline_factor)
    standing = _standing(work, deadline, request, report)
    if standing.codes is None:
        return _refuse(problem, work, deadline, request)
    steps = tuple(bare_steps(work, standing.codes))
    replayed = verify_bare(problem, steps, budget_bytes=request.budget_bytes, deadline=deadline)
    return BarePlan(replayed.cost, standing.bound, work.base_cost, replayed.peak_bytes, time.monotonic() - began, steps)


def _standing(work: Workload, deadline: int | None, request: Request, report: Callable[[Standing], None]) -> Standing:
    options = Options(seed=request.seed, tolerance=request.tolerance, report=report)
    if not request.reproducible:
        options = replace(options, keep_going=time_limit(request.time_limit_seconds))
    if request.strategy in (KEEP_ALL, POET, *EVICTING):
        state = Search(work, request.budget_bytes, deadline, options)
        if codes := _codes(work, deadline, request, options.keep_going):
            state.offer(Timeline(work, codes))
        return state.standing()
    if request.strategy == GREEDY:
        return search(work, request.budget_bytes, deadline, replace(options, rounds=0))
    if request.reproducible:
        return search(work, request.budget_bytes, deadline, options)
    return search_in_pair(work, request.budget_bytes, deadline, options)


def _codes(
    work: Workload, deadline: int | None, request: Request, keep_going: Callable[[], bool]
) -> Sequence[int] | None:
    """Return what a strategy without bounds of its own makes of a workload."""
    if request.strategy == KEEP_ALL:
        return range(work.nodes)
    if request.strategy != POET:
        return _EVICTING[request.strategy](work, request.budget_bytes)
    if work.nodes > poet.MOST_NODES:
        most = poet.MOST_NODES
        raise BadProblem(f"The problem has {work.nodes} nodes; POET's model is for at most {most}. Use optimal.")
    solved = poet.schedule(work, request.budget_bytes, deadline, keep_going)
    return solved.codes if solved else None


def _refuse(problem: BareProblem, work: Workload, deadline: int | None, request: Request) -> BareInfeasible:
    budget, floor = request.budget_bytes, work.floor_bytes
    if deadline is not None and deadline < work.base_time:
        reason = f"The deadline of {deadline} is shorter than {work.base_time}, the time of every node once; relax it."
        return BareInfeasible(floor, None, reason)
    codes = leanest(work, request.seed, time_limit(_REFUSAL_SECONDS), deadline)
    steps = bare_steps(work, codes)
    needed = verify_bare(problem, steps, budget_bytes=max(work.keep_all_bytes, 0), deadline=deadline).peak_bytes
    node = max(range(work.nodes), key=work.working_sets.__getitem__)
    if budget < floor:
        reason = f"Node {node} alone needs {floor} bytes with its inputs, more than the budget of {budget}."
    else:
        reason = f"No plan within {budget} bytes was found; {needed} bytes are enough, below {floor} nothing can run."
    return BareInfeasible(floor, needed, reason)
