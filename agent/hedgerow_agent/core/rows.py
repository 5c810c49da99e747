"""Which samples of the data are meant: a range of them, row numbers, or an order that gives them piece by piece."""

from collections.abc import Iterator
from typing import Protocol

from hedgerow_agent.core.kernels.call import RowNumbers, Rows


class Order(Protocol):
    """Row numbers one after the other, of which pieces are asked for; an array of them is one."""

    def __len__(self) -> int:
        """Return how many there are."""

    def __getitem__(self, chosen: Rows, /) -> RowNumbers:
        """Return those at some positions, counted from 0."""


def count_of(rows: slice | Order) -> int:
    """Return how many samples are meant; a slice has both ends."""
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


def piece_of(rows: slice | Order, first: int, size: int) -> Rows:
    """Return so many rows from a position on, fewer at the end."""
    if isinstance(rows, slice):
        return slice(rows.start + first, min(rows.stop, rows.start + first + size))
    return rows[first : first + size]


def in_turn(rows: slice | Order, size: int) -> Iterator[Rows]:
    """Yield all rows, so many at a time."""
    return (piece_of(rows, first, size) for first in range(0, count_of(rows), size))
