"""The tensors that survive a step: where they lie, their first values, and replacing them safely."""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from hedgerow_agent.core.arena import Arena
from hedgerow_agent.core.errors import BadInput, PagingFailed
from hedgerow_agent.core.initial import checked, initial_value, kept_value, write_initial_value
from hedgerow_agent.core.kernels.call import Array, stored
from hedgerow_plans.graph.ir import Role, Tensor
from hedgerow_plans.plan import Program


class Residents:
    """Views of parameters and optimiser state; frozen ones may lie outside the arena."""

    def __init__(self, program: Program, arena: Arena, parameters: Mapping[str, Array], seed: int) -> None:
        self._tensors = {tensor.name: tensor for graph in program.graphs for tensor in graph.resident()}
        self.views: dict[str, Array] = {name: self._outside(name, parameters, seed) for name in program.mapped}
        for place in program.resident:
            tensor = self._tensors[place.tensor]
            view = arena.place(place.offset, tensor)
            _write_first_value(tensor, parameters, seed, view)
            self.views[place.tensor] = view

    def changing(self) -> tuple[str, ...]:
        """Return the names of what training changes."""
        return tuple(name for name in self.views if self._tensors[name].role is not Role.FROZEN)

    def copy(self, names: Iterable[str]) -> dict[str, Array]:
        """Return copies of some tensors."""
        return {name: self.views[name].copy() for name in names}

    def replace(self, values: Mapping[str, Array], wanted: Iterable[str]) -> None:
        """Replace exactly the wanted tensors; nothing changes unless every value fits."""
        odd = sorted(set(values) ^ set(wanted))
        if odd:
            raise BadInput(f"The delta and the program do not name the same tensors ({', '.join(odd[:3])}); refuse it.")
        for name, value in values.items():
            checked(self._tensors[name], value)
        self.put_back(values)

    @contextmanager
    def remembered(self, folder: Path | None) -> Iterator[Callable[[], None]]:
        """Note what training changes and give a way to put it back.

        It goes into a file without a name, so that no memory is taken beside the arena; into memory if there is no
        folder, or no room in it: a full disk must not stop training.
        """
        names = self.changing()
        contents = [self._bytes(name) for name in names]
        with ExitStack() as stack:
            file = _file_of(contents, folder, stack)
            if file is not None:
                yield lambda: _read_all(file, contents)
                return
            copies = self.copy(names)
            yield lambda: self.put_back(copies)

    def put_back(self, values: Mapping[str, Array]) -> None:
        """Overwrite tensors with copies taken before."""
        for name, value in values.items():
            np.copyto(self.views[name], value)

    def _bytes(self, name: str) -> memoryview:
        """Return the bytes of a tensor where they lie; in the order of its shape they might have to be copied."""
        lying = stored(self.views[name], self._tensors[name].order)
        return lying.reshape(-1).view(np.uint8).data

    def _outside(self, name: str, parameters: Mapping[str, Array], seed: int) -> Array:
        """Return a frozen parameter where it is, such as in a mapped file; only a crooked one is copied."""
        given = _brought_value(self._tensors[name], parameters)
        return np.ascontiguousarray(initial_value(self._tensors[name], seed) if given is None else given)


def _write_first_value(tensor: Tensor, parameters: Mapping[str, Array], seed: int, view: Array) -> None:
    given = _brought_value(tensor, parameters)
    if given is None:
        write_initial_value(tensor, seed, view)
    else:
        np.copyto(view, given)


def _brought_value(tensor: Tensor, parameters: Mapping[str, Array]) -> Array | None:
    """Return what the weights say about a tensor, or None if it starts by a rule of its own."""
    given = parameters.get(tensor.name)
    if given is not None:
        return checked(tensor, given)
    if tensor.init is not None and tensor.init.kind == "kept":
        return kept_value(tensor, tensor.init, parameters)
    return None


def _file_of(contents: Iterable[memoryview], folder: Path | None, stack: ExitStack) -> IO[bytes] | None:
    """Return a file with these bytes, or None where there is no place for one."""
    if folder is None:
        return None
    try:
        file = stack.enter_context(tempfile.TemporaryFile(dir=folder, buffering=0))  # noqa: SIM115 - it is one
        for content in contents:
            done = 0
            while done < len(content):
                done += file.write(content[done:])
    except OSError:
        return None
    return file


def _read_all(file: IO[bytes], contents: Iterable[memoryview]) -> None:
    file.seek(0)
    for content in contents:
        done = 0
        while done < len(content):
            try:
                read = os.readv(file.fileno(), [content[done:]])
            except OSError:
                read = 0
            if not read:
                raise PagingFailed("Storage did not give back what a measured step began with; check the disk.")
            done += read
