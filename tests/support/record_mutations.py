"""Records that differ from real ones as a hostile or broken sender's would."""

import random
from collections.abc import Callable, Iterator

from hedgerow_agent.core.native.layout import MOST_NUMBERS, MOST_OPERANDS, MOST_PARTS, MOST_SIZES, Record

_LONGS = (-(2**63), -(2**40), -5, -1, 0, 1, 2**31, 2**32 + 1, 2**40, 2**62, 2**63 - 1)
_INTS = (-(2**31), -1, 0, MOST_PARTS + 1, 2**31 - 1)


def _near_or_far(source: random.Random, value: int) -> int:
    """Return a whole number of 64 bits near a value, twice or half of it, or an extreme one."""
    near = (value - 1, value + 1, value - 4, value + 4, value + 8, 2 * value, value // 2)
    return max(-(2**63), min(2**63 - 1, source.choice((*near, source.choice(_LONGS)))))


def _other_operator(source: random.Random, record: Record, operators: int) -> None:
    record.op = source.choice((source.randrange(operators), source.randrange(operators), operators, *_INTS))


def _other_ranges(source: random.Random, record: Record, _operators: int) -> None:
    if source.random() < 0.3:
        record.parts = source.choice((1, 2, 3, MOST_PARTS, *_INTS))
    at = source.randrange(MOST_PARTS + 1)
    record.cuts[at] = _near_or_far(source, record.cuts[at])


def _other_region(source: random.Random, record: Record, _operators: int) -> None:
    operand = record.operands[source.randrange(MOST_OPERANDS)]
    operand.region = source.choice((-1, -1, -2, *range(MOST_OPERANDS + 1), 2**40, -(2**63)))


def _other_offset(source: random.Random, record: Record, _operators: int) -> None:
    operand = record.operands[source.randrange(MOST_OPERANDS)]
    operand.offset = _near_or_far(source, operand.offset)
    if source.random() < 0.5:
        operand.bytes = max(0, operand.bytes - max(0, min(operand.offset, 2**40)))


def _other_bytes(source: random.Random, record: Record, _operators: int) -> None:
    operand = record.operands[source.randrange(MOST_OPERANDS)]
    operand.bytes = _near_or_far(source, operand.bytes)


def _other_size(source: random.Random, record: Record, _operators: int) -> None:
    used = max((at + 1 for at in range(MOST_SIZES) if record.sizes[at]), default=1)
    at = source.randrange(min(MOST_SIZES, used + 1))
    record.sizes[at] = _near_or_far(source, record.sizes[at])


def _swapped_sizes(source: random.Random, record: Record, _operators: int) -> None:
    one, other = source.randrange(MOST_SIZES // 2), source.randrange(MOST_SIZES // 2)
    record.sizes[one], record.sizes[other] = record.sizes[other], record.sizes[one]


def _overflowing_sizes(source: random.Random, record: Record, _operators: int) -> None:
    """Make products of sizes wrap around to little."""
    for at in source.sample(range(5), 2):
        record.sizes[at] = source.choice((2**32, 2**33, 2**39, 2**40))


def _other_number(source: random.Random, record: Record, _operators: int) -> None:
    record.numbers[source.randrange(MOST_NUMBERS)] = source.choice((float("nan"), float("inf"), -1.0, 0.0, 1e300))


_WAYS: tuple[Callable[[random.Random, Record, int], None], ...] = (
    _other_operator,
    _other_ranges,
    _other_region,
    _other_offset,
    _other_bytes,
    _other_size,
    _other_size,
    _swapped_sizes,
    _overflowing_sizes,
    _other_number,
)


def mutant(source: random.Random, record: Record, operators: int) -> Record:
    """Return a copy of a record with one to three things changed."""
    copy = Record.from_buffer_copy(record)
    for change in source.choices(_WAYS, k=source.choice((1, 1, 2, 3))):
        change(source, copy, operators)
    return copy


def with_other_ranges(record: Record) -> Iterator[Record]:
    """Yield copies whose ranges cover what the sizes may mean, so that wrong sizes do not hide behind wrong ranges."""
    sizes = [size for size in record.sizes if 0 < size < 2**40]
    for units in dict.fromkeys([*sizes, *(one * other for one in sizes for other in sizes[:3])]):
        copy = Record.from_buffer_copy(record)
        copy.parts = 2 if units > 1 else 1
        copy.cuts[0], copy.cuts[1], copy.cuts[copy.parts] = 0, units // 2, units
        yield copy
