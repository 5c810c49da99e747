"""A program for this machine, made with the strategies that need no solver, or the one that was made before."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from hedgerow_agent.budgets import read_cgroup_limit, read_rss_bytes
from hedgerow_agent.local.problems import Problem
from hedgerow_plans import asked, codec
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.plan import KERNEL_TABLE, PROGRAM_SCHEMA, Infeasible, Program
from hedgerow_plans.program import ProgramRequest, build_program
from hedgerow_plans.resources.device_class import ClassMemory, Compute, DeviceClass, DeviceClassSpec, FrozenWeights
from hedgerow_plans.resources.quantities import format_bytes, parse_quantity
from hedgerow_plans.resources.training_job import TrainingJobSpec

PLANNING_SECONDS = 30.0
"""After this the best plans so far are taken."""

THIS_MACHINE = "this-machine"
_NOMINAL = Compute(flops_per_second=10**9, picojoules_per_flop=1)
"""Nobody has measured this machine: plans are compared by their operations, and no energy is told from it."""


@dataclass(frozen=True, slots=True)
class Board:
    """What is planned for: a class of devices, or this machine with what is free on it."""

    name: str
    spec: DeviceClassSpec
    is_passing: bool = False  # the budget is what is free at this moment, and another a moment later


@dataclass(frozen=True, slots=True)
class Planned:
    """A program, and a digest of everything it was asked to be if it was planned here."""

    encoded: bytes
    program: Program
    request: str | None


Kept = Callable[[str], bytes | None]
"""Gives the program that was planned before for the request with a digest, if there is one."""


def knows_energy(program: Program) -> bool:
    """Whether its energy figures mean anything."""
    return program.device_class != THIS_MACHINE and any(rung.promise.step_picojoules for rung in program.rungs)


def board(device_class: DeviceClass | None, budget: str | None) -> Board:
    """Return what to plan for; a budget takes the place of the class's own."""
    if device_class is None:
        room = quantity(budget) if budget else available_bytes()
        memory = ClassMemory(budget=str(room), frozen_weights=FrozenWeights.MAPPED)
        return Board(THIS_MACHINE, DeviceClassSpec(memory=memory, compute=_NOMINAL), is_passing=not budget)
    spec = device_class.spec
    if budget:
        memory = spec.memory.model_copy(update={"budget": str(quantity(budget)), "floor": None, "allowance": None})
        spec = spec.model_copy(update={"memory": memory})
    return Board(device_class.metadata.name, spec)


def plan(job: TrainingJobSpec, target: Board, kept: Kept) -> Planned:
    """Return a program, or raise why there is none; one that was planned for the same request is taken again.

    Planning is bounded by time and thus may give another program each time, and a run can only go on with its own.
    """
    try:
        request = asked.program_request(job, target.name, target.spec)
        name = _digest(request, target)
        return _again(kept(name), request, name) or _planned(request, name)
    except GraphError as error:
        raise Problem(str(error)) from None


def _digest(request: ProgramRequest, target: Board) -> str:
    # The representation of the request's parts starts with their classes, so that no two methods look alike.
    lasting = replace(request, budget_bytes=0) if target.is_passing else request
    return hashlib.sha256(repr((lasting, KERNEL_TABLE, PROGRAM_SCHEMA)).encode()).hexdigest()


def _again(encoded: bytes | None, request: ProgramRequest, name: str) -> Planned | None:
    """Return a program that was kept if its smallest rung still fits; the budget picks the rung."""
    try:
        program = codec.decode(encoded) if encoded else None
    except codec.MalformedProgram:
        return None
    if program is None or encoded is None or program.rungs[-1].promise.peak_bytes > request.budget_bytes:
        return None
    return Planned(encoded, program, name)


def _planned(request: ProgramRequest, name: str) -> Planned:
    deadline = time.monotonic() + PLANNING_SECONDS
    program = build_program(request, keep_going=lambda: time.monotonic() < deadline)
    if isinstance(program, Infeasible):
        raise Problem(
            f"Nothing fits {request.device_class}: the smallest plan found needs {program.needed_bytes} bytes "
            f"({format_bytes(program.needed_bytes)}) and the budget is {program.available_bytes}. Raise the budget, or "
            "choose a smaller batch, method or model."
        )
    return Planned(codec.encode(program), program, name)


def available_bytes() -> int:
    """Return what is free on this machine right now: the least of the system's memory and the cgroup's."""
    import psutil  # noqa: PLC0415 - a few milliseconds, for those who ask

    limits = [int(psutil.virtual_memory().available)]
    if (cgroup := read_cgroup_limit()) is not None:
        limits.append(max(1, cgroup - read_rss_bytes()))
    return max(1, min(limits))


def quantity(text: str) -> int:
    """Return the bytes of --budget."""
    try:
        found = parse_quantity(text)
    except ValueError as error:
        raise Problem(f"--budget {text}: {error}") from None
    if found <= 0:
        raise Problem(f"--budget {text} is no memory at all; give it more than 0 bytes.")
    return found
