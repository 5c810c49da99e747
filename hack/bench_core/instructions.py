"""Which instructions contestants may use: all that the processor has, or none beyond AVX2, but the same for everybody.

A machine's owner may have held back a single library by its variables, numpy's BLAS say, and torch not: such variables
reach nobody here.
"""

from collections.abc import Mapping
from types import MappingProxyType

AVX2_AT_MOST: Mapping[str, str] = MappingProxyType(
    {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    }
)
"""What keeps torch's libraries and numpy's from AVX-512, which the compiled backend does not use and no board has."""

_OF_ONE_LIBRARY = {
    *AVX2_AT_MOST,
    "OPENBLAS_L2_SIZE",
    "OPENBLAS_BLOCK_FACTOR",
    "ONEDNN_CPU_ISA_HINTS",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "DNNL_MAX_CPU_ISA",
    "DNNL_DEFAULT_FPMATH_MODE",
    "MKL_CBWR",
    "MKL_DEBUG_CPU_TYPE",
    "NPY_ENABLE_CPU_FEATURES",
}


def alike(environ: Mapping[str, str], *, avx2: bool = False) -> dict[str, str]:
    """Return an environment in which every library may use the same instructions."""
    free = {name: value for name, value in environ.items() if name not in _OF_ONE_LIBRARY}
    return {**free, **AVX2_AT_MOST} if avx2 else free


def held_back(environ: Mapping[str, str]) -> list[str]:
    """Return what this environment says to one library alone, for people to read."""
    return sorted(f"{name}={value}" for name, value in environ.items() if name in _OF_ONE_LIBRARY)
