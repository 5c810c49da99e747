"""The shared library, ready to be called, with the BLAS that numpy has loaded already."""

import ctypes
import functools
from dataclasses import dataclass
from pathlib import Path

from hedgerow_agent.core.blas import Blas, find_blas
from hedgerow_agent.core.native.layout import Record, Refusal, Region
from hedgerow_agent.core.native.opening import FILE, Unavailable, open_library

__all__ = ["Library", "Unavailable", "load"]


@dataclass(frozen=True, slots=True)
class Library:
    """The library, ready to be called."""

    handle: ctypes.CDLL
    path: Path
    operators: dict[str, int]
    blas: Blas | None

    @property
    def instruction_set(self) -> str:
        """What the kernels in use were compiled for."""
        return str(self.handle.hedgerow_instruction_set().decode())

    def use_instruction_set(self, name: str) -> bool:
        """Use another set in programs opened from now on; False if this machine or library does not have it."""
        return int(self.handle.hedgerow_use_instruction_set(name.encode())) == 0

    def use_blas(self, blas: Blas | None) -> None:
        """Let large matrix products go to a BLAS, or to the library's own."""
        self.handle.hedgerow_use_blas(
            None if blas is None else blas.sgemm_address, 64 if blas is None else blas.integer_bits
        )


@functools.cache
def load(path: Path = FILE) -> Library | Unavailable:
    """Load the library, once for a path."""
    handle = open_library(path)
    if isinstance(handle, Unavailable):
        return handle
    _declare(handle)
    names = [handle.hedgerow_operator_name(op).decode() for op in range(handle.hedgerow_operator_count())]
    library = Library(handle, path, {name: op for op, name in enumerate(names)}, find_blas())
    library.use_blas(library.blas)
    if library.blas is not None:
        library.blas.use_threads(1)  # whoever splits work does so above it
    return library


def _declare(handle: ctypes.CDLL) -> None:
    """Tell ctypes what functions take and give."""
    handle.hedgerow_operator_name.restype = ctypes.c_char_p
    handle.hedgerow_use_instruction_set.argtypes = (ctypes.c_char_p,)
    handle.hedgerow_use_blas.argtypes = (ctypes.c_void_p, ctypes.c_int32)
    handle.hedgerow_open.restype = ctypes.c_void_p
    handle.hedgerow_open.argtypes = (
        ctypes.POINTER(Record),
        ctypes.c_int64,
        ctypes.POINTER(Region),
        ctypes.c_int64,
        ctypes.POINTER(Refusal),
    )
    handle.hedgerow_run.argtypes = (ctypes.c_void_p, ctypes.c_int32)
    handle.hedgerow_close.argtypes = (ctypes.c_void_p,)
