"""Finds the OpenBLAS that numpy brought along, for what numpy cannot say: its threads, and products taken in place."""

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_NAMES = (
    ("scipy_cblas_sgemm64_", "scipy_openblas_{}_num_threads64_", 64),
    ("scipy_cblas_sgemm", "scipy_openblas_{}_num_threads", 32),
    ("cblas_sgemm64_", "openblas_{}_num_threads64_", 64),
    ("cblas_sgemm", "openblas_{}_num_threads", 32),
)
"""Names that builds of OpenBLAS give the product and the number of threads, and the bits of their integers."""

_BY_ROWS, _AS_IT_LIES, _TURNED = 101, 111, 112
"""CBLAS's words for how matrices lie."""


@dataclass(frozen=True, slots=True)
class Blas:
    """A matrix product in a loaded library."""

    path: Path
    sgemm_address: int
    integer_bits: int
    _library: ctypes.CDLL
    _threads: str

    def use_threads(self, count: int) -> None:
        """Let products use so many threads from now on, in all of this process."""
        getattr(self._library, self._threads.format("set"))(count)  # by name, it is looked up once and kept

    def threads(self) -> int:
        """Return how many threads products use now."""
        return int(getattr(self._library, self._threads.format("get"))())

    def taking(self, first: Array, second: Array, total: Array) -> Callable[[float], None] | None:
        """Return a call that takes a rate times the product of two matrices from a third, which lies by rows.

        Nothing is written but the third. None unless all have 32 bits and lie in one piece, by rows or by columns.
        """
        factors = [_Matrix.of(matrix) for matrix in (first, second)]
        if not total.flags.c_contiguous or {matrix.dtype.str for matrix in (first, second, total)} != {"<f4"}:
            return None
        if None in factors:
            return None
        a, b = (factor for factor in factors if factor is not None)
        sizes, c = (*total.shape, first.shape[1]), total.ctypes.data_as(ctypes.c_void_p)
        multiply, width = _prototype(self.integer_bits)(self.sgemm_address), total.shape[1]

        def take(rate: float) -> None:
            multiply(
                _BY_ROWS, a.turned, b.turned, *sizes, -rate, a.address, a.stride, b.address, b.stride, 1.0, c, width
            )

        return take


@dataclass(frozen=True, slots=True)
class _Matrix:
    """A factor as CBLAS is told of it; the address keeps the array alive."""

    address: ctypes.c_void_p
    turned: int
    stride: int

    @classmethod
    def of(cls, matrix: Array) -> Self | None:
        for turned, lying in ((_AS_IT_LIES, matrix), (_TURNED, matrix.T)):
            if lying.flags.c_contiguous:
                return cls(matrix.ctypes.data_as(ctypes.c_void_p), turned, lying.shape[1])
        return None


@functools.cache
def _prototype(integer_bits: int) -> "type[ctypes._CFunctionType]":
    """Return the type of a product whose integers have so many bits."""
    whole = ctypes.c_int64 if integer_bits == 64 else ctypes.c_int32
    factor = (ctypes.c_void_p, whole)
    words, sizes = (ctypes.c_int,) * 3, (whole,) * 3
    return ctypes.CFUNCTYPE(
        None, *words, *sizes, ctypes.c_float, *factor, *factor, ctypes.c_float, ctypes.c_void_p, whole
    )


@functools.cache
def find_blas() -> Blas | None:
    """Return numpy's OpenBLAS; None if there is none."""
    for path in _candidates():
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        for product, threads, bits in _NAMES:
            if all(hasattr(library, name) for name in (product, threads.format("set"), threads.format("get"))):
                address = ctypes.cast(getattr(library, product), ctypes.c_void_p).value
                return None if address is None else Blas(path, address, bits, library, threads)
    return None


def _candidates() -> list[Path]:
    """Return files that may be numpy's BLAS: beside the package, where wheels keep it."""
    package = Path(np.__file__).parent
    folders = (package.parent / "numpy.libs", package / ".libs", package / ".dylibs")
    return [path for folder in folders for path in sorted(folder.glob("*openblas*"))]
