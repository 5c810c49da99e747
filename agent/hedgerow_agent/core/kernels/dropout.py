"""Kernel of dropout: which elements are dropped is computed from counters, forward and backward alike.

Seed, step and sample make two 32-bit keys; the element's number is mixed with them. So the same elements are dropped in
every split into micro-batches, after a restart, and when a layer is computed again. A sample is its row in the data.
"""

import numpy as np

from hedgerow_agent.core.kernels.call import Array, Bound, Call, ScratchCutter, row_numbers
from hedgerow_agent.core.kernels.counters import WORD, fold, mix, set_counters
from hedgerow_agent.core.random_bits import mixed
from hedgerow_plans.graph.tiles import ACTIVATION_TILE_ELEMENTS, tile_of

_MIXING = ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 0x9E3779B1), (15, 0x85EBCA6B))
"""Shifts and odd factors; the first two rounds are those of Wellons' "lowbias32"."""


def bind_dropout(call: Call) -> Bound:
    """Return x / (1 - rate) where it is kept, and 0 where it is dropped."""
    source, output = (array.reshape(len(array), -1) for array in (*call.inputs, *call.outputs))
    rate, seed, runtime = call.number("rate", 0.0), call.integer("seed", 0), call.runtime
    tile, scratch = tile_of(source.shape[1], ACTIVATION_TILE_ELEMENTS), ScratchCutter(call)
    counters, work = scratch.take((tile,), np.uint32), scratch.take((tile,), np.uint32)
    threshold, factor = np.uint32(int(rate * WORD)), 1 / (1 - rate)

    def drop(values: Array, first: int, keys: tuple[int, int]) -> None:
        numbers, flags = counters[: values.size], work.view(np.bool_)[: values.size]
        set_counters(numbers, first)
        _mix(numbers, work[: values.size], keys)
        np.less(numbers, threshold, out=flags)
        np.copyto(values, 0, where=flags)

    def run() -> None:
        np.multiply(source, factor, out=output)
        for values, row in zip(output, row_numbers(runtime.rows), strict=False):
            key = mixed(runtime.seed, seed, runtime.step, row)
            for first in range(0, values.size, tile):
                drop(values[first : first + tile], first, divmod(key, WORD))

    return run


def _mix(numbers: Array, work: Array, keys: tuple[int, int]) -> None:
    """Make random words of counters."""
    np.add(numbers, np.uint32(keys[0]), out=numbers)
    for turn, (shift, factor) in enumerate(_MIXING):
        mix(numbers, work, shift, factor)
        if turn == 1:
            np.bitwise_xor(numbers, np.uint32(keys[1]), out=numbers)
    fold(numbers, work, 16)


KERNELS = {"dropout": bind_dropout}
