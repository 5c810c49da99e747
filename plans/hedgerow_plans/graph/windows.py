"""Which pixels a tap of a window touches: slices of the image and of the output.

The planner counts the scratch that follows from them and the device uses it, so both ask here.
"""

from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Tap:
    """One position in the window and the rectangle where it meets the image."""

    row: int
    column: int
    image: tuple[slice, slice]
    output: tuple[slice, slice]

    @property
    def rows(self) -> int:
        """Rows of the output where it meets the image."""
        return int(self.output[0].stop - self.output[0].start)

    @property
    def columns(self) -> int:
        """Columns of the output where it meets the image."""
        return int(self.output[1].stop - self.output[1].start)

    def rows_between(self, first: int, end: int) -> int:
        """Return how many of some rows of the output meet the image."""
        return max(0, min(end, int(self.output[0].stop)) - max(first, int(self.output[0].start)))


@lru_cache(maxsize=512)
def find_taps(
    image: tuple[int, int],
    output: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int],
) -> tuple[Tap, ...]:
    """Return the taps that meet the image at all, row by row."""
    rows = [_meet(image[0], output[0], tap, stride[0], padding[0]) for tap in range(kernel[0])]
    columns = [_meet(image[1], output[1], tap, stride[1], padding[1]) for tap in range(kernel[1])]
    return tuple(
        Tap(row, column, (down[0], across[0]), (down[1], across[1]))
        for row, down in enumerate(rows)
        for column, across in enumerate(columns)
        if down is not None and across is not None
    )


def largest_part(taps: tuple[Tap, ...], rows: int, rows_at_once: int) -> int:
    """Return the most pixels of some rows of the output that a tap meets, when all rows are walked in steps."""
    steps = [(first, min(rows, first + rows_at_once)) for first in range(0, rows, rows_at_once)]
    return max((tap.columns * tap.rows_between(*step) for tap in taps for step in steps), default=0)


def _meet(size: int, count: int, tap: int, stride: int, padding: int) -> tuple[slice, slice] | None:
    first = max(0, -((tap - padding) // stride))
    end = min(count, (size - 1 + padding - tap) // stride + 1)
    if end <= first:
        return None
    begin = first * stride + tap - padding
    return slice(begin, (end - 1) * stride + tap - padding + 1, stride), slice(first, end)
