"""Products by numpy's BLAS or our own code, kernels for this processor or for any: the same up to the order of sums."""

import ctypes
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_core.core import samples
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.native.layout import ABSENT, Operand, Record, Refusal, Region
from hedgerow_agent.core.native.library import Library
from hedgerow_agent.core.native.segments import NativeBackend
from support.gradients import seeds
from support.native_records import REDUCED, program_of_workload

DISTANCE = 4e-7
"""How far a sum may be from that in 64 bits, of the sum of what is added without signs; rounding grows no faster."""

CHANGE_DISTANCE = 1e-4
"""How far apart two changes of all parameters may be, of their length: rounding that passed through whole networks."""


SGEMM = "iiinnnfpnpnfpn"
"""The arguments of CBLAS's product: i for enumerations, n for lengths, f for factors, p for matrices."""


@contextmanager
def counted_products(library: Library) -> Iterator[list[int]]:
    """Let the library use a BLAS that notes the thread of each product that reaches it."""
    assert library.blas is not None, "numpy brought no OpenBLAS along, so there is nothing to count."
    length = ctypes.c_int64 if library.blas.integer_bits == 64 else ctypes.c_int32
    kinds = {"i": ctypes.c_int, "n": length, "f": ctypes.c_float, "p": ctypes.c_void_p}
    sgemm = ctypes.CFUNCTYPE(None, *(kinds[kind] for kind in SGEMM))
    multiply, callers = sgemm(library.blas.sgemm_address), list[int]()

    def note(*arguments: float) -> None:
        callers.append(threading.get_ident())  # two threads may do this at once
        multiply(*arguments)

    noting = sgemm(note)  # must live for as long as the library may call it
    address = ctypes.cast(noting, ctypes.c_void_p).value
    assert address is not None
    library.use_blas(replace(library.blas, sgemm_address=address))
    try:
        yield callers
    finally:
        library.use_blas(library.blas)


@contextmanager
def without_blas(library: Library) -> Iterator[None]:
    library.use_blas(None)
    try:
        yield
    finally:
        library.use_blas(library.blas)


def product(library: Library, a: Array, b: Array, turned: tuple[bool, bool], by_columns: bool) -> Array:
    """Return A B, either stored as its transpose if asked for, in two parts."""
    m, k = a.shape
    n = b.shape[1]
    stored = [np.ascontiguousarray(matrix.T if turn else matrix) for matrix, turn in zip((a, b), turned, strict=True)]
    c: Array = np.full((m, n), np.nan, np.float32)
    arrays, units = [*stored, c], n if by_columns else m
    record = Record(op=library.operators["product"], parts=2)
    record.cuts[:3] = [0, units // 2, units]
    record.sizes[:6] = [m, n, k, int(turned[0]), int(turned[1]), int(by_columns)]
    for at in range(len(record.operands)):
        record.operands[at] = Operand(at, 0, arrays[at].nbytes) if at < 3 else Operand(ABSENT, 0, 0)
    regions = (Region * 3)(*(Region(array.ctypes.data, array.nbytes, 1) for array in arrays))
    refusal = Refusal()
    program = library.handle.hedgerow_open(ctypes.byref(record), 1, regions, 3, refusal)
    assert program, refusal.verdict
    library.handle.hedgerow_run(program, 1)
    library.handle.hedgerow_close(program)
    return c


lengths = st.tuples(st.integers(1, 70), st.integers(1, 70), st.integers(1, 1100))


@given(lengths, st.tuples(st.booleans(), st.booleans()), st.booleans(), seeds)
def test_both_are_as_near_to_64_bits_as_32_bits_allow(
    library: Library, shape: tuple[int, int, int], turned: tuple[bool, bool], by_columns: bool, seed: int
) -> None:
    rng, (m, n, k) = np.random.default_rng(seed), shape
    a, b = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
    wide, scale = a.astype(np.float64) @ b, np.abs(a).astype(np.float64) @ np.abs(b)
    by_blas = product(library, a, b, turned, by_columns)
    with without_blas(library):
        by_own = product(library, a, b, turned, by_columns)
    for found in (by_blas, by_own):
        assert (np.abs(found - wide) <= DISTANCE * scale).all()


def change(library: Library, name: str) -> Array:
    """Return what one step changes of all parameters."""
    executor = Executor(program_of_workload(REDUCED[name]), {}, 0, backend=NativeBackend(library, 2))
    before = executor.delta()
    executor.step(*samples(REDUCED[name]), 1.0)
    after = executor.delta()
    executor.close()
    return np.concatenate([(after[key].astype(np.float64) - before[key]).ravel() for key in sorted(before)])


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only here two instruction sets are always built")
@pytest.mark.parametrize("name", ["mlp", "cnn", "encoder"])
def test_whole_networks_train_alike_with_the_instructions_of_every_processor(library: Library, name: str) -> None:
    usual = library.instruction_set
    wanted = change(library, name)
    assert library.use_instruction_set("sse2")
    try:
        found = change(library, name)
    finally:
        library.use_instruction_set(usual)
    assert np.linalg.norm(found - wanted) < CHANGE_DISTANCE * np.linalg.norm(wanted)


@pytest.mark.parametrize("name", ["mlp", "cnn", "encoder"])
def test_whole_networks_train_alike_with_either(library: Library, name: str) -> None:
    with counted_products(library) as callers:
        wanted = change(library, name)
        by_blas = len(callers)
        with without_blas(library):
            found = change(library, name)
        by_own = len(callers) - by_blas
    assert by_blas > 0, "numpy's product was not used"
    assert by_own == 0, "the library's own product was not used"
    assert np.linalg.norm(found - wanted) < CHANGE_DISTANCE * np.linalg.norm(wanted)
