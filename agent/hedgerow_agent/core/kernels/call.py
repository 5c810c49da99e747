"""What a kernel is given when it is bound to the arena, and what may change between two runs of it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hedgerow_plans.graph.ir import Node, Order
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
    """One node with the views it reads, writes and changes; `scratch` has exactly the bytes of the operator table.

    A view has the tensor's shape and the strides of its order. Orders that are not given are those of the samples.
    """

    node: Node
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    updates: tuple[Array, ...]
    scratch: Bytes
    runtime: Runtime
    input_orders: tuple[Order, ...] = ()
    output_orders: tuple[Order, ...] = ()
    flops: int = 0  # as the operator table counts them
    update_orders: tuple[Order, ...] = ()

    @property
    def order(self) -> Order:
        """The order of the images, for a node all of whose images lie in one."""
        orders = (*self.input_orders, *self.output_orders)
        return next((order for order in orders if order is not Order.SAMPLES), Order.SAMPLES)

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


def stored(view: Array, order: Order) -> Array:
    """Return a view with its axes as they lie in memory, outermost first: a contiguous array."""
    return view.transpose(order.axes(view.ndim))


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
        piece: Array = np.ndarray(shape, wanted, self._call.scratch, self._used_bytes)
        self._used_bytes = end
        return piece

    def back_to(self, used_bytes: int) -> None:
        """Cut the next array where an earlier one lies that is no longer needed by then."""
        self._used_bytes = used_bytes

    @property
    def used_bytes(self) -> int:
        """Where the next array begins."""
        return self._used_bytes


def row_numbers(rows: Rows) -> list[int]:
    """Return which samples of the data these are."""
    return list(range(rows.start, rows.stop)) if isinstance(rows, slice) else [int(row) for row in rows]
