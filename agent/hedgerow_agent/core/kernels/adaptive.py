"""Kernels of Adam, with moments of 32 or of 8 bits, and of the count of steps that both read.

An eight-bit moment is a code times the scale of its block, where the code runs over a power of the value: squares for
the first moment (codes -127 to 127), fourth powers for the second (1 to 255). So small values keep their order of
magnitude beside large ones. The second moment never becomes zero beside others, or a step divided by it would be huge.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from hedgerow_agent.core.kernels.call import Array, Bound, Call, ScratchCutter
from hedgerow_agent.core.kernels.clipping import GradientOf, clipped_gradient
from hedgerow_plans.graph.tiles import STATE_BLOCK_ELEMENTS, UPDATE_TILE_ELEMENTS, tile_of

_SMALLEST_SCALE = 1.2e-38
"""The smallest normal number of 32 bits; a block of zeros has this scale instead of one that cannot divide."""


@dataclass(frozen=True, slots=True)
class _Settings:
    beta1: float
    beta2: float
    epsilon: float
    weight_decay: float

    @classmethod
    def of(cls, call: Call) -> Self:
        """Read the attributes of a node."""
        return cls(
            call.number("beta1", 0.9),
            call.number("beta2", 0.999),
            call.number("epsilon", 1e-8),
            call.number("weight_decay", 0.0),
        )

    def change(self, arrays: tuple[Array, Array, Array, Array], work: Array, rate: float, step: int) -> None:
        """Update (parameter, gradient, first, second) in place; steps are counted from 1."""
        parameter, gradient, first, second = arrays
        np.multiply(gradient, 1 - self.beta1, out=work)
        np.multiply(first, self.beta1, out=first)
        np.add(first, work, out=first)
        np.multiply(gradient, gradient, out=work)
        np.multiply(work, 1 - self.beta2, out=work)
        np.multiply(second, self.beta2, out=second)
        np.add(second, work, out=second)
        np.sqrt(second, out=work)
        np.multiply(work, (1 - self.beta2**step) ** -0.5, out=work)
        np.add(work, self.epsilon, out=work)
        np.divide(first, work, out=work)
        np.multiply(work, rate / (1 - self.beta1**step), out=work)
        if self.weight_decay:
            np.multiply(parameter, 1 - rate * self.weight_decay, out=parameter)
        np.subtract(parameter, work, out=parameter)


def bind_count(call: Call) -> Bound:
    """Count one more step."""
    (steps,) = call.updates

    def run() -> None:
        np.add(steps, 1, out=steps)

    return run


def bind_adam(call: Call) -> Bound:
    """Update a parameter and its moments: m / sqrt(v), both corrected for having started at zero."""
    steps = call.inputs[1]
    parameter, first, second = (array.reshape(-1) for array in call.updates)
    tile = tile_of(parameter.size, UPDATE_TILE_ELEMENTS)
    scratch = ScratchCutter(call)
    buffer, gradient = scratch.take((tile,), parameter.dtype), clipped_gradient(call, 2, scratch, tile)
    settings, runtime = _Settings.of(call), call.runtime

    def run() -> None:
        rate, step = runtime.learning_rate, int(steps) + 1
        for start in range(0, parameter.size, tile):
            part = slice(start, start + tile)
            arrays = (parameter[part], gradient(part), first[part], second[part])
            settings.change(arrays, buffer[: arrays[0].size], rate, step)

    return run


def bind_adam8bit(call: Call) -> Bound:
    """Update a parameter as Adam does, with moments that are unpacked, used and packed again tile by tile."""
    steps, settings, runtime = call.inputs[1], _Settings.of(call), call.runtime
    size, scratch = call.updates[0].size, ScratchCutter(call)
    tile = tile_of(size, UPDATE_TILE_ELEMENTS)
    buffers = [scratch.take((tile,), call.updates[0].dtype) for _ in range(3)]
    gradient = clipped_gradient(call, 2, scratch, tile)
    pieces = [_Piece.cut(call, gradient, buffers, blocks) for blocks in _blocks(size)]

    def run() -> None:
        rate, step = runtime.learning_rate, int(steps) + 1
        for piece in pieces:
            piece.run(settings.change, rate, step)

    return run


def _blocks(size: int) -> Iterator[tuple[int, int, int]]:
    """Yield (start, blocks, elements of a block): tiles of whole blocks, then the part of a block that remains."""
    for start in range(0, size, UPDATE_TILE_ELEMENTS):
        length = min(size - start, UPDATE_TILE_ELEMENTS)
        whole, rest = divmod(length, STATE_BLOCK_ELEMENTS)
        if whole:
            yield start, whole, STATE_BLOCK_ELEMENTS
        if rest:
            yield start + length - rest, 1, rest


_Change = Callable[[tuple[Array, Array, Array, Array], Array, float, int], None]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Blocks that are updated together, one a row."""

    parameter: Array
    gradient: Callable[[], Array]
    first: tuple[Array, Array]  # codes and scales
    second: tuple[Array, Array]
    buffers: tuple[Array, Array, Array]

    @classmethod
    def cut(cls, call: Call, gradient: GradientOf, buffers: list[Array], blocks: tuple[int, int, int]) -> Self:
        """Return the views of some blocks, given as (start, blocks, elements of a block)."""
        start, rows, width = blocks
        parameter, codes1, scales1, codes2, scales2 = (array.reshape(-1) for array in call.updates)
        part, block = slice(start, start + rows * width), start // STATE_BLOCK_ELEMENTS
        in_tile = slice(start % UPDATE_TILE_ELEMENTS, start % UPDATE_TILE_ELEMENTS + rows * width)
        own, shape = slice(block, block + rows), (rows, width)
        first, second, work = (buffer[in_tile].reshape(shape) for buffer in buffers)
        return cls(
            parameter[part].reshape(shape),
            lambda: gradient(part).reshape(shape),
            (codes1[part].reshape(shape), scales1[own]),
            (codes2[part].reshape(shape), scales2[own]),
            (first, second, work),
        )

    def run(self, change: _Change, rate: float, step: int) -> None:
        """Unpack, update, pack."""
        first, second, work = self.buffers
        _unpack_first(*self.first, first, work)
        _unpack_second(*self.second, second)
        change((self.parameter, self.gradient(), first, second), work, rate, step)
        _pack_first(first, *self.first, work)
        _pack_second(second, *self.second, work)


def _unpack_first(codes: Array, scales: Array, values: Array, work: Array) -> None:
    np.multiply(codes, 1 / 127, out=values)
    np.absolute(values, out=work)
    np.multiply(values, work, out=values)
    np.multiply(values, scales[:, np.newaxis], out=values)


def _unpack_second(codes: Array, scales: Array, values: Array) -> None:
    np.multiply(codes, 1 / 255, out=values)
    np.multiply(values, values, out=values)
    np.multiply(values, values, out=values)
    np.multiply(values, scales[:, np.newaxis], out=values)


def _pack_first(values: Array, codes: Array, scales: Array, work: Array) -> None:
    np.absolute(values, out=work)
    _divide_by_largest(work, scales)
    np.sqrt(work, out=work)
    np.multiply(work, 127, out=work)
    np.rint(work, out=work)
    np.copysign(work, values, out=work)
    np.copyto(codes, work, casting="unsafe")


def _pack_second(values: Array, codes: Array, scales: Array, work: Array) -> None:
    np.copyto(work, values)
    _divide_by_largest(work, scales)
    np.sqrt(work, out=work)
    np.sqrt(work, out=work)
    np.multiply(work, 255, out=work)
    np.rint(work, out=work)
    np.maximum(work, 1, out=work)
    np.copyto(codes, work, casting="unsafe")


def _divide_by_largest(work: Array, scales: Array) -> None:
    np.maximum.reduce(work, axis=1, out=scales)
    np.maximum(scales, _SMALLEST_SCALE, out=scales)
    np.divide(work, scales[:, np.newaxis], out=work)


KERNELS = {"adam": bind_adam, "adam8bit": bind_adam8bit, "count": bind_count}
