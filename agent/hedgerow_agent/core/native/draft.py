"""A record before it is given regions: what an encoder makes of a call."""

from collections.abc import Callable
from dataclasses import dataclass

from hedgerow_agent.core.kernels.call import Array, Call


@dataclass(frozen=True, slots=True)
class Draft:
    """One kernel of the library with its operands as views, and how its work may be cut.

    `units` are cut at multiples of `grain`; `work` says roughly how many numbers are touched or multiplied, so that
    little work is not cut at all.
    """

    op: str
    operands: tuple[Array | None, ...]
    sizes: tuple[int, ...]
    units: int
    work: int
    numbers: tuple[float, ...] = ()
    grain: int = 1


@dataclass(frozen=True, slots=True)
class Block:
    """Numbers that change from step to step, where records can read them."""

    rate: Array  # one float


Encoder = Callable[[Call, Block], Draft | None]
"""Makes a draft of a call, or None if the library has no kernel for it."""
