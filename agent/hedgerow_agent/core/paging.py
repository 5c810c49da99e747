"""Tensors that wait in storage until the backward pass needs them again.

One file without a name, so that it vanishes with the process whatever happens; each tensor has its own place in it.
"""

import os
import tempfile
from pathlib import Path

import numpy as np

from hedgerow_agent.core.errors import PagingFailed
from hedgerow_agent.core.kernels.call import Array, Bound
from hedgerow_plans.graph.ir import round_up


class PageFile:
    """Where one executor pages to; the file is made when the first plan pages something."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._descriptor: int | None = None
        self._places: dict[str, int] = {}
        self._end = 0

    def bind_out(self, tensor: str, view: Array) -> Bound:
        """Return the call that writes a tensor."""
        place, descriptor = self._place(tensor, view.nbytes), self._open()
        content = view.reshape(-1).view(np.uint8).data

        def run() -> None:
            done = 0
            try:
                while done < len(content):
                    done += os.pwrite(descriptor, content[done:], place + done)
            except OSError as error:
                raise PagingFailed(
                    f"Storage took {done} of {len(content)} bytes of {tensor} ({error.strerror}); make room."
                ) from error

        return run

    def bind_in(self, tensor: str, view: Array) -> Bound:
        """Return the call that reads a tensor back, wherever it lies now."""
        place, descriptor = self._place(tensor, view.nbytes), self._open()
        content = view.reshape(-1).view(np.uint8).data

        def run() -> None:
            done, problem = 0, "they are gone"
            try:
                while done < len(content) and (count := os.preadv(descriptor, [content[done:]], place + done)):
                    done += count
            except OSError as error:
                problem = str(error.strerror)
            if done < len(content):
                raise PagingFailed(
                    f"Storage gave back {done} of {len(content)} bytes of {tensor} ({problem}); check the disk."
                )

        return run

    def close(self) -> None:
        """Remove the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _place(self, tensor: str, length: int) -> int:
        key = f"{tensor}/{length}"
        if key not in self._places:
            self._places[key] = self._end
            self._end += round_up(length)
        return self._places[key]

    def _open(self) -> int:
        if self._folder is None:
            raise PagingFailed("This plan pages tensors to storage and no folder was given; name one.")
        if self._descriptor is None:
            self._descriptor = _nameless(self._folder)
        return self._descriptor


def _nameless(folder: Path) -> int:
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            return os.dup(file.fileno())
    except OSError as error:
        raise PagingFailed(
            f"No file to page tensors to can be made in {folder} ({error.strerror}); make room there or check the disk."
        ) from error
