"""What runs in the planning processes: build, encode and verify a program, or check one that was kept.

Everything that goes in and comes out can be pickled. A program that does not verify never leaves here.
"""

import time
from dataclasses import dataclass

from hedgerow_operator.planning.solver import planners
from hedgerow_plans import codec
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.plan import Infeasible, Plan, Program
from hedgerow_plans.planning.ladder import Each
from hedgerow_plans.program import ProgramRequest, build_program, difference
from hedgerow_plans.resources.columns import plan_columns
from hedgerow_plans.resources.execution_plan import PlanColumns, Rung
from hedgerow_plans.verify import verify_program


@dataclass(frozen=True, slots=True)
class Summary:
    """What an ExecutionPlan shows of a program."""

    digest: str
    model: str
    method: str
    device_class: str
    batch_size: int
    kernel_table: int
    rungs: tuple[Rung, ...]
    floor_bytes: int
    peak_bytes: int
    gap_percent: str

    @property
    def columns(self) -> PlanColumns:
        """What `kubectl get` shows of it."""
        return plan_columns(self.floor_bytes, self.peak_bytes, len(self.rungs), self.gap_percent)


@dataclass(frozen=True, slots=True)
class Planned:
    """A program that verifies."""

    encoded: bytes
    summary: Summary
    seconds: float
    cut_short: bool = False  # the time was up: planning again may give other bytes


@dataclass(frozen=True, slots=True)
class Unusable:
    """Model, method and settings make no graph, or what was planned does not verify."""

    message: str
    is_our_fault: bool


Outcome = Planned | Infeasible | Unusable


@dataclass(frozen=True, slots=True)
class Until:
    """A question that is answered with no when the time is up; other processes may be asked it too."""

    end_seconds: float  # of the clock that all processes of a machine share

    def __call__(self) -> bool:
        """Whether there is time left."""
        return time.monotonic() < self.end_seconds


def plan(request: ProgramRequest, timeout_seconds: float, strategy: str | None = None, each: Each = map) -> Outcome:
    """Plan a program; strategies that search stop searching when the time is up."""
    began = time.monotonic()
    keep_going, asked = Until(began + timeout_seconds), planners(strategy)
    try:
        program = build_program(request, keep_going, searching=asked.searching, quick=asked.quick, each=each)
    except GraphError as problem:
        return Unusable(str(problem), is_our_fault=False)
    if isinstance(program, Infeasible):
        return program
    encoded = codec.encode(program)
    if violated := _violations(program, request.budget_bytes):
        return Unusable(violated, is_our_fault=True)
    took = time.monotonic() - began
    return Planned(encoded, summarise(program, encoded), took, cut_short=not keep_going())


def check(encoded: bytes, request: ProgramRequest | None) -> Planned | Unusable:
    """Decode and verify a program that was kept, and compare it with what was asked for.

    Without a request it must be known by its digest: then these bytes were compared before.
    """
    try:
        program = codec.decode(encoded)
        foreign = difference(program, request) if request else ""
    except (codec.MalformedProgram, GraphError) as problem:
        return Unusable(str(problem), is_our_fault=True)
    if foreign:
        return Unusable(f"The program is not what was asked for; it has another {foreign}.", is_our_fault=True)
    if violated := _violations(program, request.budget_bytes if request else None):
        return Unusable(violated, is_our_fault=True)
    return Planned(encoded, summarise(program, encoded), 0.0)


def _violations(program: Program, budget_bytes: int | None) -> str:
    found = verify_program(program, budget_bytes)
    return f"The program does not verify: {found[0]}" if found else ""


def summarise(program: Program, encoded: bytes) -> Summary:
    """Return what people are shown of a program."""
    peaks = [rung.promise.peak_bytes for rung in program.rungs]
    return Summary(
        digest=codec.digest(encoded),
        model=program.model,
        method=program.method,
        device_class=program.device_class,
        batch_size=program.batch_size,
        kernel_table=program.kernel_table,
        rungs=tuple(map(_rung, program.rungs)),
        floor_bytes=min(peaks),
        peak_bytes=max(peaks),
        gap_percent=_percent(_worst_gap(program)),
    )


def _rung(plan: Plan) -> Rung:
    return Rung(
        micro_batch=plan.micro_batch,
        strategy=plan.strategy,
        peak_bytes=plan.promise.peak_bytes,
        step_microjoules=plan.promise.step_picojoules // 10**6,
        step_microseconds=plan.promise.step_nanoseconds // 10**3,
        flops=plan.promise.step_flops,
        least_microjoules=plan.proven_picojoules // 10**6,
        gap_percent=_percent(plan.gap),
        working_set_bytes=plan.bounds.working_set_bytes,
        max_live_bytes=plan.bounds.max_live_bytes,
    )


def _worst_gap(program: Program) -> float | None:
    """Return how far the energy of the ladder's worst rung may be from the least."""
    gaps = [rung.gap for rung in program.rungs]
    return None if None in gaps else max(gap for gap in gaps if gap is not None)


def _percent(gap: float | None) -> str:
    return "-" if gap is None else f"{100 * gap:.2f}"
