"""Replays of one program: the same bits on one thread and on two, and on every rung of a ladder."""

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from bench_core.core import samples
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.native.library import Library
from hedgerow_agent.core.native.segments import NativeBackend
from hedgerow_plans.methods.catalogue import Full, Lora, Method
from hedgerow_plans.models import zoo
from hedgerow_plans.plan import Program
from hedgerow_plans.training.clipping import ByGlobalNorm
from hedgerow_plans.training.optimizers import Adam8bit
from support.native_records import REDUCED, program_of_workload
from support.programs import make_program, program_of, with_keep_all
from support.sampling import repetitions, sample

RATE = 0.01
PLENTY = 2**40
STEPS = repetitions(3, 20)


class OnOneThread:
    """The library's functions, except that programs cut for several threads are walked by one."""

    def __init__(self, handle: ctypes.CDLL) -> None:
        self._handle = handle

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handle, name)

    def hedgerow_run(self, program: int, _threads: int) -> None:
        self._handle.hedgerow_run(program, 1)


def trained(program: Program, name: str, library: Library) -> bytes:
    executor, batch = Executor(program, {}, 0, backend=NativeBackend(library, 2)), samples(REDUCED[name])
    for _ in range(STEPS):
        executor.step(*batch, RATE)
    state = executor.resident_state()
    executor.close()
    return state


@pytest.mark.parametrize("name", REDUCED)
def test_two_threads_give_the_bits_of_one(library: Library, name: str) -> None:
    program = program_of_workload(REDUCED[name])
    alone = replace(library, handle=cast("ctypes.CDLL", OnOneThread(library.handle)))
    wanted = trained(program, name, alone)
    assert trained(program, name, library) == wanted
    assert wanted != Executor(program, {}, 0).resident_state()


def test_two_trainings_at_once_do_not_meet(library: Library) -> None:
    """Whoever finds the other threads taken walks alone, to the same bits."""
    names = ("mlp", "cnn") * 4
    programs = {name: program_of_workload(REDUCED[name]) for name in names}
    wanted = {name: trained(programs[name], name, library) for name in programs}
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda name: trained(programs[name], name, library), names)
        assert [state == wanted[name] for name, state in zip(names, found, strict=True)] == [True] * len(names)


def test_a_forked_process_goes_on_without_the_threads_it_left_behind(library: Library) -> None:
    program = program_of_workload(REDUCED["cnn"])
    wanted = trained(program, "cnn", library)
    child = os.fork()
    if child == 0:
        os._exit(0 if trained(program, "cnn", library) == wanted else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_two_threads_clip_by_the_norm_that_one_finds(library: Library, name: str) -> None:
    program = program_of_workload(REDUCED[name], Adam8bit(), ByGlobalNorm(0.01))
    alone = replace(library, handle=cast("ctypes.CDLL", OnOneThread(library.handle)))
    assert trained(program, name, library) == trained(program, name, alone)


BATCH = 6
SHAPES = {"mlp": (784,), "cnn": (3, 16, 16), "encoder": (16,), "mobilenet": (3, 32, 32), "resnet": (3, 32, 32)}
SMALL = ("mlp", "cnn")
"""Whose ladders take a moment; the others' are climbed in `make thorough`."""


@cache
def ladder(name: str) -> Program:
    graph = zoo.build(REDUCED[name].model, REDUCED[name].classes, SHAPES[name])
    return program_of(graph, Full(), BATCH, budget_bytes=PLENTY)


def one_rung(program: Program, rung: int, batch: tuple[Array, Array], library: Library, folder: Path) -> bytes:
    """Take a plain step and a measured one; return what survives.

    Less than promised is fine: kernels in C leave scratch untouched that their twins fill.
    """
    backend = NativeBackend(library, 2)
    executor = Executor(program, {}, 1, rung, folder, backend=backend)
    executor.step(*batch, RATE)
    measured = executor.measure(*batch, RATE).measured_peak_bytes
    state = executor.resident_state()
    executor.close()
    assert measured is not None
    assert program.resident_bytes < measured <= program.rungs[rung].promise.peak_bytes, program.rungs[rung].strategy
    return state


def climb(program: Program, batch: tuple[Array, Array], library: Library, folder: Path) -> None:
    """Train on every rung of a ladder and on keep-all at its micro-batch: the bits are the same."""
    kept = dict[int, bytes]()
    for rung, plan in enumerate(program.rungs):
        if plan.micro_batch not in kept:
            kept[plan.micro_batch] = one_rung(with_keep_all(program, plan), 0, batch, library, folder)
        state = one_rung(program, rung, batch, library, folder)
        assert state == kept[plan.micro_batch], plan.strategy
        found, whole = (np.frombuffer(part, np.float32) for part in (state, kept[BATCH]))
        assert np.allclose(found, whole, rtol=1e-3, atol=1e-5), plan.strategy


@pytest.mark.parametrize("name", [*SMALL, *sample(sorted(set(SHAPES) - set(SMALL)), 0)])
def test_every_rung_gives_the_bits_of_keep_all_in_no_more_than_its_bytes(
    library: Library, name: str, tmp_path: Path
) -> None:
    batch = samples(replace(REDUCED[name], shape=SHAPES[name], batch_size=BATCH))
    climb(ladder(name), batch, library, tmp_path)


@pytest.mark.parametrize("method", [Full(), Lora(4, 4)], ids=["full", "lora"])
def test_so_does_every_rung_for_a_small_budget(library: Library, method: Method, tmp_path: Path) -> None:
    program, rng = make_program("cnn-small", method, BATCH, input_shape=(1, 28, 28)), np.random.default_rng(5)
    batch = rng.standard_normal((BATCH, 1, 28, 28), dtype=np.float32), rng.integers(0, 10, BATCH, dtype=np.int32)
    climb(program, batch, library, tmp_path)
