"""Finds the OpenBLAS that numpy brought along, so that matrix products in C use it too, and sets its threads."""

import ctypes
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_NAMES = (
    ("scipy_cblas_sgemm64_", "scipy_openblas_{}_num_threads64_", 64),
    ("scipy_cblas_sgemm", "scipy_openblas_{}_num_threads", 32),
    ("cblas_sgemm64_", "openblas_{}_num_threads64_", 64),
    ("cblas_sgemm", "openblas_{}_num_threads", 32),
)
"""Names that builds of OpenBLAS give the product and the number of threads, and the bits of their integers."""


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
        self._library[self._threads.format("set")](count)

    def threads(self) -> int:
        """Return how many threads products use now."""
        return int(self._library[self._threads.format("get")]())


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
