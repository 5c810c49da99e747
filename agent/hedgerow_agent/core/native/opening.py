"""Opens the shared library and looks whether it belongs to this agent. Imports no numpy: an idle agent asks too."""

import ctypes
from dataclasses import dataclass
from pathlib import Path

from hedgerow_agent.core.native.layout import ABI

FILE = Path(__file__).parent / "libhedgerow.so"


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why there is no compiled backend, as the part of a sentence that comes before its remedy."""

    reason: str


def open_library(path: Path = FILE) -> ctypes.CDLL | Unavailable:
    """Return the library if it is there, loads, and speaks as `layout` does."""
    if not path.exists():
        return Unavailable(f"The compiled backend is not installed ({path} is missing)")
    try:
        handle = ctypes.CDLL(str(path))
        version = int(handle.hedgerow_abi_version())
    except (OSError, AttributeError) as error:
        return Unavailable(f"The compiled backend {path} cannot be loaded ({error})")
    if version != ABI:
        return Unavailable(f"The compiled backend {path} has version {version} and this agent needs {ABI}")
    handle.hedgerow_instruction_set.restype = ctypes.c_char_p
    return handle
