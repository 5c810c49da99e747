"""A step works in its arena: what numpy allocates besides is small, whatever the network."""

import tracemalloc

import pytest

from bench_core.core import LEARNING_RATE, SEED, samples
from bench_core.programs import encoded_program
from bench_core.workloads import WORKLOADS
from hedgerow_agent.core.executor import Executor
from hedgerow_plans import codec

KIBIBYTE = 1024


@pytest.mark.parametrize("name", ["mlp", "encoder"])
def test_a_step_allocates_next_to_nothing_beyond_its_arena(name: str) -> None:
    workload = WORKLOADS[name]
    executor = Executor(codec.decode(encoded_program(workload)), {}, SEED)
    x, y = samples(workload)
    executor.step(x, y, LEARNING_RATE)  # what is kept for all steps is made in the first
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    executor.step(x, y, LEARNING_RATE)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"FIGURE bytes allocated in a step of {name}: {peak - before}")
    assert peak - before <= max(256 * KIBIBYTE, executor.plan.promise.peak_bytes // 100)
