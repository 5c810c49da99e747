"""Two steps of a ladder of the zoo: rung by rung in 32 bits, and in each micro-batch in 64."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hedgerow_agent.core.executor import Executor
from hedgerow_plans.graph.ir import DType
from hedgerow_plans.plan import Plan, Program
from support.wide_steps import WideTraining
from support.zoo_ladders import SEED, batch_of, weights_of

RATE = 1e-4


@dataclass(frozen=True)
class Run:
    """What survived each of two steps, and the highest byte of the second."""

    first: bytes
    second: bytes
    measured_peak_bytes: int


def two_steps(program: Program, rung: int, folder: Path) -> Run:
    """Take a plain step and a measured one."""
    executor, batch = Executor(program, weights_of(program.model), SEED, rung, folder), batch_of(program.model)
    executor.step(*batch, RATE)
    first = executor.resident_state()
    measured = executor.measure(*batch, RATE).measured_peak_bytes
    second = executor.resident_state()
    executor.close()
    assert measured is not None
    return Run(first, second, measured)


def second_step(program: Program, rung: int, first: bytes, folder: Path) -> bytes:
    """Take the second step alone, after the first one of another rung, and return what survives it."""
    executor = Executor(program, weights_of(program.model), SEED, rung, folder)
    executor.load_resident_state(first)
    executor.steps_taken = 1
    executor.step(*batch_of(program.model), RATE)
    state = executor.resident_state()
    executor.close()
    return state


def assert_close(program: Program, state: bytes, wanted: bytes) -> None:
    """Compare what survives a step up to the order of sums, relative to each tensor's largest number."""
    tensors = {tensor.name: tensor for graph in program.graphs for tensor in graph.resident()}
    for place in program.resident:
        tensor = tensors[place.tensor]
        if tensor.dtype is DType.FLOAT32:
            part = slice(place.offset, place.offset + tensor.bytes(1))
            one, other = (np.frombuffer(content[part], np.float32) for content in (state, wanted))
            scale = float(np.abs(other).max(initial=0.0)) or 1.0
            assert np.allclose(one / scale, other / scale, rtol=1e-3, atol=2e-4), place.tensor


def by_micro_batch(program: Program) -> dict[int, Plan]:
    """Return a rung of each micro-batch: without an arena, rungs of the same differ in nothing."""
    plans = {plan.micro_batch: plan for plan in program.rungs}
    assert all(plan.graph == plans[plan.micro_batch].graph for plan in program.rungs)
    return plans


def wide_training(program: Program) -> WideTraining:
    """Return how to take the same steps in 64 bits."""
    return WideTraining(program, weights_of(program.model), SEED, batch_of(program.model), RATE)
