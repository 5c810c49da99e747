"""Batch normalisation of images by pixels: what belongs to a channel is spread over a row, and rows are long.

As for other orders, the variance is the mean square of what is left after the mean is taken off.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hedgerow_agent.core.kernels.by_pixels.rows import Summation, as_rows, rows_of_view, spread, tiles
from hedgerow_agent.core.kernels.call import Array, Bound, Call, ScratchCutter
from hedgerow_agent.core.kernels.deviation import EPSILON, divide_by_deviation, set_factor
from hedgerow_plans.graph.ops.batch_norm import is_batch


@dataclass(frozen=True, slots=True)
class _Room:
    """Scratch for a weighted sum: a number a channel, two rows and a tile of rows."""

    deviation: Array
    means: Array
    totals: Array
    tile: Array


def bind_with_running(call: Call) -> Bound:
    """Return x * factor + shift."""
    x, weight, bias, mean, variance = call.inputs
    source, output, epsilon = as_rows(x), as_rows(call.outputs[0]), call.number("epsilon", EPSILON)
    scratch = ScratchCutter(call)
    factor, shift = (scratch.take(mean.shape, x.dtype) for _ in range(2))
    factors, shifts = (scratch.take(source.shape[1:], x.dtype) for _ in range(2))

    def run() -> None:
        set_factor(factor, weight, variance, epsilon)
        np.multiply(mean, factor, out=shift)
        np.subtract(bias, shift, out=shift)
        spread(factor, factors)
        spread(shift, shifts)
        np.multiply(source, factors, out=output)
        np.add(output, shifts, out=output)

    return run


def bind_with_batch(call: Call) -> Bound:
    """Return (x - mean) * factor + bias, with the mean and variance of the batch."""
    x, weight, bias = call.inputs[:3]
    source, output, epsilon = as_rows(x), as_rows(call.outputs[0]), call.number("epsilon", EPSILON)
    rows, scratch = rows_of_view(x), ScratchCutter(call)
    factor = scratch.take(weight.shape, x.dtype)
    mean, variance = call.outputs[1] if len(call.outputs) > 1 else scratch.take((2, *weight.shape), x.dtype)
    first, second = (scratch.take((rows.length,), x.dtype) for _ in range(2))
    summation = Summation.take(rows, scratch, x.dtype)
    squares = scratch.take((rows.per_tile, rows.length), x.dtype)
    parts = [(output[tile], squares[: tile.stop - tile.start]) for tile in tiles(rows)]
    count = source.size // weight.size

    def centre() -> None:
        summation.total(source, mean)
        np.divide(mean, count, out=mean)
        spread(mean, first)
        np.subtract(source, first, out=output)

    def measure() -> None:
        second.fill(0)
        for values, room in parts:
            np.multiply(values, values, out=room)
            np.matmul(summation.ones[: len(room)], room, out=summation.sums)
            np.add(second, summation.sums, out=second)
        np.copyto(summation.sums, second)
        summation.by_channel(variance)
        np.divide(variance, count, out=variance)

    def run() -> None:
        centre()
        measure()
        set_factor(factor, weight, variance, epsilon)
        spread(factor, first)
        spread(bias, second)
        np.multiply(output, first, out=output)
        np.add(output, second, out=output)

    return run


def bind_grad_with_running(call: Call) -> Bound:
    """Return dy * factor."""
    gradient, variance, weight = call.inputs
    incoming, output, epsilon = as_rows(gradient), as_rows(call.outputs[0]), call.number("epsilon", EPSILON)
    scratch = ScratchCutter(call)
    factor, factors = scratch.take(weight.shape, gradient.dtype), scratch.take(incoming.shape[1:], gradient.dtype)

    def run() -> None:
        set_factor(factor, weight, variance, epsilon)
        spread(factor, factors)
        np.multiply(incoming, factors, out=output)

    return run


def bind_grad_with_batch(call: Call) -> Bound:
    """With f = weight / deviation and c = x - mean: dx = f (dy - mean(dy)) - f c mean(dy c) / variance.

    The sums of dy and of dy c / deviation are the gradients of bias and weight, and may be given.
    """
    gradient, x, (mean, variance), weight = call.inputs[:4]
    incoming, source, output = as_rows(gradient), as_rows(x), as_rows(call.outputs[0])
    rows, scratch, epsilon = rows_of_view(x), ScratchCutter(call), call.number("epsilon", EPSILON)
    factor, slope, shift = (scratch.take(weight.shape, x.dtype) for _ in range(3))
    factors, slopes, shifts = (scratch.take((rows.length,), x.dtype) for _ in range(3))
    room = scratch.take((rows.per_tile, rows.length), x.dtype)
    along, level, sum_up = _sums(call, scratch, _Room(factor, factors, slopes, room))
    parts = [(source[tile], incoming[tile], output[tile], room[: tile.stop - tile.start]) for tile in tiles(rows)]
    count = source.size // weight.size

    def prepare() -> None:
        np.add(variance, epsilon, out=slope)
        np.sqrt(slope, out=slope)
        np.divide(weight, slope, out=factor)
        np.divide(along, slope, out=slope)
        np.multiply(slope, factor, out=slope)
        np.divide(slope, -count, out=slope)
        np.multiply(level, factor, out=shift)
        np.divide(shift, -count, out=shift)

    def run() -> None:
        sum_up()
        prepare()
        spread(factor, factors)
        spread(slope, slopes)
        np.multiply(slope, mean, out=slope)
        np.subtract(shift, slope, out=shift)
        spread(shift, shifts)
        for values, arriving, leaving, work in parts:
            np.multiply(values, slopes, out=work)
            np.add(work, shifts, out=work)
            np.multiply(arriving, factors, out=leaving)
            np.add(leaving, work, out=leaving)

    return run


def _sums(call: Call, scratch: ScratchCutter, room: _Room) -> tuple[Array, Array, Bound]:
    """Return the sums of dy c / deviation and of dy, and the call that computes them unless they are given."""
    if len(call.inputs) == 6:
        return call.inputs[4], call.inputs[5], lambda: None
    gradient, x, (mean, variance), weight = call.inputs
    along, level = (scratch.take(weight.shape, x.dtype) for _ in range(2))
    summation = Summation.take(rows_of_view(x), scratch, x.dtype)
    weigh, incoming = _weighing((gradient, x), mean, summation, room), as_rows(gradient)
    epsilon = call.number("epsilon", EPSILON)

    def run() -> None:
        summation.total(incoming, level)
        weigh(along)
        divide_by_deviation(along, variance, epsilon, room.deviation)

    return along, level, run


def bind_grad_weight(call: Call) -> Bound:
    """Return the sum of dy * (x - mean) / deviation over samples and pixels."""
    gradient, x, *statistics = call.inputs
    mean, variance = statistics[0] if is_batch(call.node) else statistics
    rows, scratch, (output,) = rows_of_view(x), ScratchCutter(call), call.outputs
    deviation = scratch.take(output.shape, x.dtype)
    means, totals = (scratch.take((rows.length,), x.dtype) for _ in range(2))
    summation = Summation.take(rows, scratch, x.dtype)
    room = _Room(deviation, means, totals, scratch.take((rows.per_tile, rows.length), x.dtype))
    weigh, epsilon = _weighing((gradient, x), mean, summation, room), call.number("epsilon", EPSILON)

    def run() -> None:
        weigh(output)
        divide_by_deviation(output, variance, epsilon, deviation)

    return run


def _weighing(pair: tuple[Array, Array], mean: Array, summation: Summation, room: _Room) -> Callable[[Array], None]:
    """Return the call that sets its argument to the sum of dy * (x - mean)."""
    gradient, source = (as_rows(view) for view in pair)
    parts = [
        (source[tile], gradient[tile], room.tile[: tile.stop - tile.start], summation.ones[: tile.stop - tile.start])
        for tile in tiles(summation.rows)
    ]

    def run(out: Array) -> None:
        summation.ones.fill(1)
        spread(mean, room.means)
        room.totals.fill(0)
        for values, arriving, work, ones in parts:
            np.subtract(values, room.means, out=work)
            np.multiply(work, arriving, out=work)
            np.matmul(ones, work, out=summation.sums)
            np.add(room.totals, summation.sums, out=room.totals)
        np.copyto(summation.sums, room.totals)
        summation.by_channel(out)

    return run
