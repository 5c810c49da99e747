"""Where the products go that add up to a weight's gradient: into the gradient, or straight into the weight.

Plain SGD subtracts the gradient times the rate and nothing else, so a product can be subtracted where it is made.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hedgerow_agent.core.blas import find_blas
from hedgerow_agent.core.kernels.call import Array, Bound, Runtime, ScratchCutter
from hedgerow_plans.graph.tiles import UPDATE_TILE_ELEMENTS, rows_per_tile

Factors = tuple[Array, Array]
"""Two matrices whose product is, or adds to, a part of the gradient."""


class Sink(Protocol):
    """What becomes of products."""

    def clear(self, total: Array) -> None:
        """Prepare a part that no product may reach."""
        ...

    def product(self, factors: Factors, total: Array) -> Bound:
        """Return the call that makes one product, which is all of a part."""
        ...

    def sum(self, terms: Sequence[Factors], total: Array, scratch: ScratchCutter) -> list[Bound]:
        """Return calls, to be made in this order, for products that are added up."""
        ...


class Gradient:
    """Products are written, as the gradient that somebody reads."""

    def clear(self, total: Array) -> None:
        """Set a part to zero."""
        total.fill(0)

    def product(self, factors: Factors, total: Array) -> Bound:
        """Return the call that writes one product."""
        first, second = factors
        return lambda: np.matmul(first, second, out=total)

    def sum(self, terms: Sequence[Factors], total: Array, scratch: ScratchCutter) -> list[Bound]:
        """Return a call that writes the first product, and calls that make the others in scratch and add them.

        Factors with a third axis are stacks of matrices, whose products are added up first.
        """
        part = scratch.take(total.shape, total.dtype) if len(terms) > 1 else total
        first, _ = terms[0]
        stack = scratch.take((len(first), *total.shape), total.dtype) if first.ndim > total.ndim else None
        outputs = [total] + [part] * (len(terms) - 1)
        calls = [_making(factors, output, stack) for factors, output in zip(terms, outputs, strict=True)]
        return [calls[0], *(_adding(call, part, total) for call in calls[1:])]


def _making(factors: Factors, output: Array, stack: Array | None) -> Bound:
    first, second = factors
    if stack is None:
        return lambda: np.matmul(first, second, out=output)
    products = stack[: len(first)]

    def run() -> None:
        np.matmul(first, second, out=products)
        np.add.reduce(products, axis=0, out=output)

    return run


def _adding(make: Bound, part: Array, total: Array) -> Bound:
    def run() -> None:
        make()
        np.add(total, part, out=total)

    return run


@dataclass(frozen=True, slots=True)
class Descent:
    """Products times the rate are taken from the weight, and nobody sees a gradient."""

    runtime: Runtime

    def clear(self, total: Array) -> None:
        """Leave the weight where no product reaches it."""

    def product(self, factors: Factors, total: Array) -> Bound:
        """Return the call that takes one product: one of BLAS, or some rows at a time where that is not known."""
        take, runtime = taking(*factors, total), self.runtime
        return lambda: take(runtime.learning_rate)

    def sum(self, terms: Sequence[Factors], total: Array, _scratch: ScratchCutter) -> list[Bound]:
        """Return calls that take one product each."""
        return [self.product(factors, total) for factors in terms]


def taking(first: Array, second: Array, total: Array) -> Callable[[float], object]:
    """Return the call that takes a product from a matrix, which may lie by columns."""
    if not total.flags.c_contiguous:
        first, second, total = second.T, first.T, total.T
    blas = find_blas()
    return (blas and blas.taking(first, second, total)) or _taking_rows(first, second, total)


@functools.cache
def _rows_beside_the_arena(rows: int, width: int, dtype: str) -> Array:
    """Return room for a few rows of a product, the same for all that are as large: they come one after the other."""
    return np.empty((rows, width), dtype)


def _taking_rows(first: Array, second: Array, total: Array) -> Callable[[float], object]:
    """Return the same by numpy, which cannot add to what is there: a few rows of the product lie beside the arena."""
    rows, width = total.shape
    tile = rows_per_tile(rows, width, UPDATE_TILE_ELEMENTS)
    product = _rows_beside_the_arena(tile, width, total.dtype.str)
    parts = [slice(row, row + tile) for row in range(0, rows, tile)]
    tiles = [(first[part], product[: len(total[part])], total[part]) for part in parts]

    def take(rate: float) -> None:
        for part, step, values in tiles:
            np.matmul(part, second, out=step)
            np.multiply(step, rate, out=step)
            np.subtract(values, step, out=values)

    return take
