"""A batch of images as a matrix whose rows repeat the channels; sums over samples and pixels are products with ones."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hedgerow_agent.core.kernels.call import Array, Bound, Call, ScratchCutter, stored
from hedgerow_plans.graph.ir import Order
from hedgerow_plans.graph.ops.channel_sums import Rows, rows_of


def rows_of_view(view: Array) -> Rows:
    """Return how a view (samples, channels, ...) by pixels is cut into rows."""
    samples, channels = view.shape[:2]
    return rows_of(samples, channels, view.size // (samples * channels))


def as_rows(view: Array) -> Array:
    """Return images by pixels as a matrix."""
    rows = rows_of_view(view)
    return stored(view, Order.PIXELS).reshape(rows.count, rows.length)


@dataclass(frozen=True, slots=True)
class Summation:
    """Room to add up a matrix of rows: ones, and one sum for each element of a row."""

    rows: Rows
    ones: Array
    sums: Array

    @classmethod
    def take(cls, rows: Rows, scratch: ScratchCutter, dtype: np.dtype[np.generic]) -> "Summation":
        """Cut the room out of scratch."""
        return cls(rows, scratch.take((rows.count,), dtype), scratch.take((rows.length,), dtype))

    def by_channel(self, out: Array) -> None:
        """Add up what repeats a channel."""
        np.add.reduce(self.sums.reshape(self.rows.repeats, self.rows.channels), axis=0, out=out)

    def total(self, matrix: Array, out: Array) -> None:
        """Set `out` to the sum of each channel."""
        self.ones.fill(1)
        np.matmul(self.ones, matrix, out=self.sums)
        self.by_channel(out)


def spread(values: Array, row: Array) -> None:
    """Repeat one number a channel over a row."""
    np.copyto(row.reshape(-1, len(values)), values)


def tiles(rows: Rows) -> Iterator[slice]:
    """Yield the rows that are worked on at once."""
    for first in range(0, rows.count, rows.per_tile):
        yield slice(first, min(rows.count, first + rows.per_tile))


def bind_channel_sums(call: Call) -> Bound:
    """Return the sum of each channel of images by pixels or by channels."""
    (images,), (output,) = call.inputs, call.outputs
    scratch = ScratchCutter(call)
    if call.order is Order.PIXELS:
        summation, matrix = Summation.take(rows_of_view(images), scratch, images.dtype), as_rows(images)
        return lambda: summation.total(matrix, output)
    matrix = stored(images, call.order).reshape(len(output), -1)
    ones = scratch.take(matrix.shape[1:], images.dtype)

    def run() -> None:
        ones.fill(1)
        np.matmul(matrix, ones, out=output)

    return run
