"""Memory that ends where a page ends, with pages on either side that nobody may touch: one step too far is a crash."""

import ctypes
import mmap

import numpy as np

from hedgerow_agent.core.kernels.call import Bytes

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_NOTHING_ALLOWED = 0


class Fenced:
    """Bytes of a given number, flush with the fence behind them; what lies before them up to the page is watched."""

    def __init__(self, size: int, content: Bytes) -> None:
        page = mmap.PAGESIZE
        inner = -(-max(size, 1) // page) * page
        self._mapping = mmap.mmap(-1, inner + 2 * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        whole: Bytes = np.frombuffer(self._mapping, np.uint8)
        self.pages = whole[page : page + inner]
        self.pages[:] = np.resize(content, inner)
        self.before = self.pages.copy()
        self.gap = inner - size
        first = int(whole.__array_interface__["data"][0])
        self.address = first + page + self.gap
        for fence in (first, first + page + inner):
            if _LIBC.mprotect(fence, page, _NOTHING_ALLOWED):
                raise OSError(ctypes.get_errno(), "A fence cannot be put up.")

    def changed(self) -> tuple[int, int] | None:
        """Return the first and the end of the bytes that changed since the last look, counted from the start."""
        where = np.flatnonzero(self.pages != self.before)
        return (int(where[0]) - self.gap, int(where[-1]) + 1 - self.gap) if where.size else None

    def put_back(self) -> None:
        """Undo every change."""
        np.copyto(self.pages, self.before)
