"""A program for this machine, made with the strategies that need no solver."""

import time
from dataclasses import dataclass

from hedgerow_agent.budgets import read_cgroup_limit, read_rss_bytes
from hedgerow_agent.local.problems import Problem
from hedgerow_plans import asked, codec
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.plan import Infeasible
from hedgerow_plans.program import build_program
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

    @property
    def knows_energy(self) -> bool:
        """Whether its energy figures mean anything."""
        return self.name != THIS_MACHINE


def board(device_class: DeviceClass | None, budget: str | None) -> Board:
    """Return what to plan for; a budget takes the place of the class's own."""
    if device_class is None:
        room = _quantity(budget) if budget else available_bytes()
        memory = ClassMemory(budget=str(room), frozen_weights=FrozenWeights.MAPPED)
        return Board(THIS_MACHINE, DeviceClassSpec(memory=memory, compute=_NOMINAL))
    spec = device_class.spec
    if budget:
        memory = spec.memory.model_copy(update={"budget": str(_quantity(budget)), "floor": None, "allowance": None})
        spec = spec.model_copy(update={"memory": memory})
    return Board(device_class.metadata.name, spec)


def plan(job: TrainingJobSpec, target: Board) -> bytes:
    """Return an encoded program, or raise why there is none."""
    deadline = time.monotonic() + PLANNING_SECONDS
    try:
        request = asked.program_request(job, target.name, target.spec)
        program = build_program(request, keep_going=lambda: time.monotonic() < deadline)
    except GraphError as error:
        raise Problem(str(error)) from None
    if isinstance(program, Infeasible):
        raise Problem(
            f"Nothing fits {target.name}: the smallest plan found needs {program.needed_bytes} bytes "
            f"({format_bytes(program.needed_bytes)}) and the budget is {program.available_bytes}. Raise the budget, or "
            "choose a smaller batch, method or model."
        )
    return codec.encode(program)


def available_bytes() -> int:
    """Return what is free on this machine right now: the least of the system's memory and the cgroup's."""
    import psutil  # noqa: PLC0415 - a few milliseconds, for those who ask

    limits = [int(psutil.virtual_memory().available)]
    if (cgroup := read_cgroup_limit()) is not None:
        limits.append(max(1, cgroup - read_rss_bytes()))
    return max(1, min(limits))


def _quantity(text: str) -> int:
    try:
        found = parse_quantity(text)
    except ValueError as error:
        raise Problem(f"--budget {text}: {error}") from None
    if found <= 0:
        raise Problem(f"--budget {text} is no memory at all; give it more than 0 bytes.")
    return found
