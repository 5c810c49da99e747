"""What survives a step: where it lies, and how a measured step finds its way back to it."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.initial import initial_value
from hedgerow_agent.weights import map_tensors
from hedgerow_plans.graph.ir import Order
from hedgerow_plans.methods.catalogue import Full, Lora
from hedgerow_plans.models import zoo
from hedgerow_plans.plan import Program
from hedgerow_plans.program import DeviceCosts, ProgramRequest, build_program
from hedgerow_plans.training.optimizers import Sgd
from hedgerow_plans.tuning import LEAST_BUDGET_BYTES
from support.programs import make_program


def test_frozen_parameters_are_used_where_they_lie_in_the_weights_file(tmp_path: Path) -> None:
    request = ProgramRequest(
        "cnn-small", Lora(2), Sgd(), 4, "test", DeviceCosts(10**9, 1), 1 << 20, frozen_outside=True
    )
    program = build_program(request)
    assert isinstance(program, Program)
    file = tmp_path / "base.safetensors"
    save_file({tensor.name: initial_value(tensor, 3) for tensor in zoo.build("cnn-small").resident()}, file)
    weights = map_tensors(file)
    executor = Executor(program, weights, seed=1)
    assert program.mapped
    for name in program.mapped:
        assert np.shares_memory(executor._residents.views[name], weights[name])
        assert not executor._residents.views[name].flags.writeable


@pytest.mark.parametrize(("model", "order"), [("mlp", Order.INPUTS), ("resnet8", Order.TAPS)])
def test_a_measured_step_takes_one_step_however_weights_lie(model: str, order: Order, tmp_path: Path) -> None:
    program = make_program(model, Full(), budget_bytes=LEAST_BUDGET_BYTES)
    assert order in {tensor.order for tensor in program.graphs[0].resident()}
    shape, states = program.graphs[0].by_name()["x"].shape, []
    rng = np.random.default_rng(0)
    batch = rng.standard_normal((12, *shape)).astype(np.float32), rng.integers(0, 10, 12, dtype=np.int32)
    for folder, measured in ((None, False), (None, True), (tmp_path, True)):
        executor = Executor(program, {}, 1, paging_folder=folder)
        (executor.measure if measured else executor.step)(*batch, 0.05)
        states.append(executor.resident_state())
    assert states[0] == states[1] == states[2]


def test_a_measured_step_needs_no_memory_for_what_it_began_with_and_no_disk_either(tmp_path: Path) -> None:
    program = make_program("mlp", Full())
    rng = np.random.default_rng(0)
    batch = rng.standard_normal((12, 1, 8, 8)).astype(np.float32), rng.integers(0, 10, 12, dtype=np.int32)
    states, peaks = [], []
    for folder in (tmp_path, tmp_path / "nowhere", None):
        executor = Executor(program, {}, seed=1)
        executor._folder = folder
        tracemalloc.start()
        try:
            executor.measure(*batch, 0.05)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        states.append(executor.resident_state())
    assert len(set(states)) == 1
    changing = sum(executor._residents.views[name].nbytes for name in executor._residents.changing())
    assert peaks[0] < peaks[2] - changing // 2
    assert list(tmp_path.iterdir()) == []
