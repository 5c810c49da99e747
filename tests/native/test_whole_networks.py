"""Whole steps of the five workloads on the compiled backend: how near to 64 bits, in which bytes, in how many calls."""

from functools import cache

import pytest

from bench_core.core import samples
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.native.library import Library
from hedgerow_agent.core.native.segments import NativeBackend
from hedgerow_plans.training.clipping import ByGlobalNorm
from hedgerow_plans.training.optimizers import Adam8bit, Sgd
from support.native_records import REDUCED, Recorder, program_of_workload
from support.reference_steps import Reference, reference_of

LOSS_DISTANCE = 1e-5
"""How far a loss may be from the one in 64 bits, of itself."""

GRADIENT_FACTOR = 2.0
"""How much further from 64 bits than numpy's in 32 bits gradients may be: sums are taken in another order."""

names = pytest.mark.parametrize("name", REDUCED)


@cache
def reference(name: str) -> Reference:
    return reference_of(REDUCED[name])


@names
def test_the_loss_is_that_of_64_bits(library: Library, name: str) -> None:
    wanted = reference(name)
    loss, _ = wanted.step(NativeBackend(library))
    print(f"FIGURE loss of {name} against 64 bits: {abs(loss - wanted.loss) / wanted.loss:.1e}")
    assert abs(loss - wanted.loss) < LOSS_DISTANCE * wanted.loss


@names
def test_gradients_are_as_near_to_64_bits_as_numpys(library: Library, name: str) -> None:
    wanted = reference(name)
    _, numpys = wanted.step(None)
    _, ours = wanted.step(NativeBackend(library))
    allowed, found = wanted.distance(numpys), wanted.distance(ours)
    print(f"FIGURE gradients of {name} against 64 bits: numpy {allowed:.1e}, native {found:.1e}")
    assert 0 < found <= GRADIENT_FACTOR * allowed


@names
def test_a_step_uses_exactly_the_promised_bytes(library: Library, name: str) -> None:
    wanted = reference(name)
    executor = Executor(wanted.program, wanted.values, 0, backend=NativeBackend(library, 2))
    measured = executor.measure(*samples(wanted.workload), 0.01).measured_peak_bytes
    executor.close()
    assert measured == wanted.program.rungs[0].promise.peak_bytes


@names
def test_only_samples_and_labels_are_fetched_by_numpy(library: Library, name: str) -> None:
    """With momentum, where no weight is updated as its gradient is made."""
    program, recorder = program_of_workload(REDUCED[name], Sgd(0.9)), Recorder(library)
    executor = Executor(program, {}, 0, backend=recorder)
    calls = len(executor._training.begin) + len(executor._training.body) + len(executor._training.finish)
    executor.close()
    assert set(recorder.left_to_numpy) == {"input"}
    assert calls == 4  # each of two fetches, and all that follows it in one piece


@names
def test_neither_clipping_nor_moments_in_eight_bits_are_left_to_numpy(library: Library, name: str) -> None:
    program, recorder = program_of_workload(REDUCED[name], Adam8bit(), ByGlobalNorm(1.0)), Recorder(library)
    Executor(program, {}, 0, backend=recorder).close()
    assert set(recorder.left_to_numpy) == {"input"}
