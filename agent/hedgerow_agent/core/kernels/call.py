"""What a kernel is given when it is bound to the arena, and what may change between two runs of it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hedgerow_plans.graph.ir import Node
from hedgerow_plans.graph.operator import as_pair

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]
RowNumbers = npt.NDArray[np.intp]
Rows = slice | RowNumbers
Bound = Callable[[], object]
Augment = Callable[[Array, int], None]
"""Changes one sample in place, by chance that a 64-bit word decides."""


@dataclass(slots=True)
class Runtime:
    """What the executor sets before it replays a bound list."""

    learning_rate: float = 0.0
    fields: Mapping[str, Array] = field(default_factory=dict)  # whole arrays, by the input's field name
    rows: Rows = field(default_factory=lambda: slice(0, 0))  # the samples of this micro-batch
    seed: int = 0  # of the job
    step: int = 0  # optimiser steps taken before this one
    augment: Augment | None = None  # what is done to samples as they are read


@dataclass(frozen=True, slots=True)
class Call:
    """One node with the views it reads, writes and changes; `scratch` has exactly the bytes of the operator table."""

    node: Node
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    updates: tuple[Array, ...]
    scratch: Bytes
    runtime: Runtime

    def integer(self, name: str, default: int) -> int:
        """Return an attribute that is a whole number."""
        value = self.node.attributes.get(name, default)
        if not isinstance(value, int):
            raise TypeError(f"Node {self.node.name}: attribute {name} is {value!r}; it must be a whole number.")
        return value

    def number(self, name: str, default: float) -> float:
        """Return an attribute that is a number."""
        value = self.node.attributes.get(name, default)
        if not isinstance(value, int | float):
            raise TypeError(f"Node {self.node.name}: attribute {name} is {value!r}; it must be a number.")
        return float(value)

    def pair(self, name: str, default: int) -> tuple[int, int]:
        """Return an attribute for rows and columns; one whole number stands for both."""
        value = self.node.attributes.get(name, default)
        return as_pair(value if isinstance(value, tuple) else self.integer(name, default))

    def integers(self, name: str) -> tuple[int, ...]:
        """Return an attribute that is a list of whole numbers."""
        value = self.node.attributes.get(name)
        if not isinstance(value, tuple):
            raise TypeError(f"Node {self.node.name}: attribute {name} is {value!r}; it must be a list of numbers.")
        return value


class ScratchCutter:
    """Cuts typed arrays out of a scratch view, one after the other."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._used_bytes = 0

    def take(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Return the next array; one that does not fit means the table and the kernel disagree."""
        wanted = np.dtype(dtype)
        end = self._used_bytes + math.prod(shape) * wanted.itemsize
        if end > self._call.scratch.nbytes:
            raise ValueError(
                f"Node {self._call.node.name} ({self._call.node.op}) needs {end} bytes of scratch and the plan gives "
                f"{self._call.scratch.nbytes}; plan it again with this agent's kernel table."
            )
        piece = self._call.scratch[self._used_bytes : end].view(wanted).reshape(shape)
        self._used_bytes = end
        return piece


def row_numbers(rows: Rows) -> list[int]:
    """Return which samples of the data these are."""
    return list(range(rows.start, rows.stop)) if isinstance(rows, slice) else [int(row) for row in rows]
