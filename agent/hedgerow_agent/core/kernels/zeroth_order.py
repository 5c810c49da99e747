"""Kernels of training without a backward pass: a random direction that is computed where it is needed, and never kept.

Seed, step and the tensor's number make two 32-bit keys; the element's number is mixed with them, and one bit of the
result says whether the element goes up or down. So every split into micro-batches and every restart sees the same.
"""

import numpy as np

from hedgerow_agent.core.kernels.call import Array, Bound, Call, ScratchCutter
from hedgerow_agent.core.kernels.counters import WORD, mix, set_counters
from hedgerow_agent.core.random_bits import mixed
from hedgerow_plans.graph.tiles import UPDATE_TILE_ELEMENTS, tile_of

_STREAM = 0x4D655A4F
"""Keeps these keys apart from those of dropout."""
_ROUNDS = ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 0x9E3779B1))


class _Direction:
    """The signs of one tensor's direction, a tile at a time."""

    def __init__(self, call: Call, elements: int) -> None:
        self.tile = tile_of(elements, UPDATE_TILE_ELEMENTS)
        self._key, self._runtime = call.integer("key", 0), call.runtime
        scratch = ScratchCutter(call)
        self._numbers, self._work = (scratch.take((self.tile,), np.uint32) for _ in range(2))

    def keys(self) -> tuple[int, int]:
        """Return the keys of this step."""
        return divmod(mixed(self._runtime.seed, _STREAM, self._runtime.step, self._key), WORD)

    def falls(self, first: int, count: int, keys: tuple[int, int]) -> Array:
        """Return, for elements from `first` on, 1 where the direction is -1 and 0 where it is 1."""
        numbers, work = self._numbers[:count], self._work[:count]
        set_counters(numbers, first)
        for key, (shift, factor) in zip((keys[0], keys[1], 0), _ROUNDS, strict=True):
            np.add(numbers, np.uint32(key), out=numbers)
            mix(numbers, work, shift, factor)
        np.right_shift(numbers, np.uint32(31), out=numbers)
        return numbers

    def signs(self, first: int, count: int, keys: tuple[int, int]) -> Array:
        """Return the direction itself, in 32 bits."""
        signs: Array = self._work.view(np.float32)[:count]
        np.multiply(self.falls(first, count, keys), np.float32(-2), out=signs, casting="same_kind")
        np.add(signs, np.float32(1), out=signs)
        return signs


def bind_perturbed(call: Call) -> Bound:
    """Copy a parameter, moved along the direction."""
    source, output = call.inputs[0].reshape(-1), call.outputs[0].reshape(-1)
    distance, direction = call.number("distance", 0.0), _Direction(call, source.size)

    def run() -> None:
        keys = direction.keys()
        for first in range(0, source.size, direction.tile):
            values = output[first : first + direction.tile]
            np.multiply(direction.signs(first, values.size, keys), distance, out=values, casting="same_kind")
            np.add(values, source[first : first + direction.tile], out=values)

    return run


def bind_accumulate_slope(call: Call) -> Bound:
    """Add what this micro-batch says of the slope of the mean loss."""
    (ahead, behind), (total,) = call.inputs, call.updates
    factor = 1 / (2 * call.number("distance", 1.0) * call.integer("batch_size", 1))

    def run() -> None:
        difference = ahead.sum(dtype=np.float64) - behind.sum(dtype=np.float64)
        total[0] += factor * difference

    return run


def bind_descend(call: Call) -> Bound:
    """Move a parameter down the slope: p -= rate (slope z + decay p)."""
    slope, parameter = call.inputs[0], call.updates[0].reshape(-1)
    decay, direction, runtime = call.number("weight_decay", 0.0), _Direction(call, parameter.size), call.runtime

    def run() -> None:
        keys, rate = direction.keys(), runtime.learning_rate
        for first in range(0, parameter.size, direction.tile):
            values = parameter[first : first + direction.tile]
            signs = direction.signs(first, values.size, keys)
            np.multiply(signs, np.float32(rate * float(slope[0])), out=signs)
            if decay:
                np.multiply(values, 1 - rate * decay, out=values)
            np.subtract(values, signs, out=values)

    return run


KERNELS = {"perturbed": bind_perturbed, "accumulate_slope": bind_accumulate_slope, "descend": bind_descend}
