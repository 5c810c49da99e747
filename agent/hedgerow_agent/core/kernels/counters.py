"""Random words made of counters, in place: the same wherever, and in whatever pieces, they are made."""

import numpy as np

from hedgerow_agent.core.kernels.call import Array

WORD = 2**32


def set_counters(numbers: Array, first: int) -> None:
    """Count upwards from `first` in place, by doubling what is there."""
    numbers[0] = first
    done = 1
    while done < numbers.size:
        count = min(done, numbers.size - done)
        np.add(numbers[:count], np.uint32(done), out=numbers[done : done + count])
        done += count


def fold(numbers: Array, work: Array, shift: int) -> None:
    """Let the upper bits of each word decide about its lower ones."""
    np.right_shift(numbers, np.uint32(shift), out=work)
    np.bitwise_xor(numbers, work, out=numbers)


def mix(numbers: Array, work: Array, shift: int, factor: int) -> None:
    """Take one round of mixing, with an odd factor; arithmetic is modulo 2^32."""
    fold(numbers, work, shift)
    np.multiply(numbers, np.uint32(factor), out=numbers)
