"""One private mapping of memory in which everything a plan places lies, with a guard zone above it.

The mapping is made once, for the rung with the highest peak. Switching down gives the pages above the lower peak back
to the system; there is never a second arena. How high a step really reaches is measured by filling the bytes above the
residents with a pattern and looking for the highest byte that changed.
"""

import math
import mmap
import sys

import numpy as np
import numpy.typing as npt

from hedgerow_agent.core.errors import CoreError
from hedgerow_agent.core.forms import Form, form_of
from hedgerow_agent.core.kernels.call import Array, Bytes
from hedgerow_plans.graph.ir import Tensor, round_up

GUARD_BYTES = 4096
"""What is watched above the peak of a plan."""

PATTERNS = (0xA5, 0x5A)
"""Two values without a common bit: whatever is written differs from at least one of them."""

_SEARCH_BYTES = 65_536


class Arena:
    """Bytes at fixed offsets, from zero to the largest peak of a program."""

    def __init__(self, capacity_bytes: int) -> None:
        self.capacity_bytes = round_up(capacity_bytes)
        self._mapping = _map_private(self.capacity_bytes + GUARD_BYTES)
        # A page boundary, so every planned offset is as aligned as it was planned.
        self._bytes: Bytes = np.frombuffer(self._mapping, np.uint8, self.capacity_bytes + GUARD_BYTES)

    @property
    def whole(self) -> Bytes:
        """All bytes that plans may speak of."""
        return self._bytes[: self.capacity_bytes]

    def view(self, offset: int, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Return an array at an offset; the bytes are not touched."""
        wanted = np.dtype(dtype)
        return self.lay(offset, Form(shape, wanted, None, math.prod(shape) * wanted.itemsize))

    def place(self, offset: int, tensor: Tensor, micro_batch: int = 1) -> Array:
        """Return a tensor's array at an offset: of its shape, and with the strides of the order in which it lies."""
        return self.lay(offset, form_of(tensor, micro_batch))

    def lay(self, offset: int, form: Form) -> Array:
        """Return an array of a form at an offset."""
        end = offset + form.bytes
        if offset < 0 or end > self._bytes.nbytes:
            raise CoreError(
                f"A plan places bytes {offset} to {end} in an arena of {self.capacity_bytes}; it was not verified."
            )
        return np.ndarray(form.shape, form.dtype, self._bytes, offset, form.strides)

    def read(self, end_bytes: int) -> bytes:
        """Return a copy of the first bytes."""
        return self._bytes[:end_bytes].tobytes()

    def write(self, content: bytes) -> None:
        """Overwrite the first bytes."""
        self._bytes[: len(content)] = np.frombuffer(content, dtype=np.uint8)

    def give_back_above(self, end_bytes: int) -> int:
        """Return whole pages above an offset to the system and say how many bytes they were."""
        first = -(-end_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
        length = len(self._mapping) - first
        if length <= 0:
            return 0
        self._mapping.madvise(mmap.MADV_DONTNEED, first, length)
        return length

    def fill(self, first: int, end: int, pattern: int) -> None:
        """Fill bytes with a pattern."""
        self._bytes[first:end] = pattern

    def highest_changed(self, first: int, end: int, pattern: int) -> int:
        """Return the end of the highest byte between two offsets that no longer holds the pattern, or `first`."""
        while end > first:
            begin = max(first, end - _SEARCH_BYTES)
            changed = self._bytes[begin:end] != pattern
            if changed.any():
                return end - int(changed[::-1].argmax())
            end = begin
        return first

    def close(self) -> None:
        """Give all pages back; views stay valid, and read zeros."""
        self.give_back_above(0)


def _map_private(length: int) -> mmap.mmap:
    """Map fresh zeros; private, because pages of a shared mapping cannot be given back."""
    if sys.platform == "win32":
        raise CoreError("The training core needs Linux: its arena gives memory back page by page.")
    whole_pages = -(-length // mmap.PAGESIZE) * mmap.PAGESIZE
    return mmap.mmap(-1, whole_pages, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
