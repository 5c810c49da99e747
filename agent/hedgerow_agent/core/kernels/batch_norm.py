"""Kernels of batch normalisation; sums go through one number per sample and channel, never through a copy of x.

Variance is the mean square of what is left after the mean is taken off, so that no large numbers cancel.
"""

import numpy as np

from hedgerow_agent.core.kernels.by_pixels import batch_norm as by_pixels
from hedgerow_agent.core.kernels.call import Array, Bound, Call, ScratchCutter
from hedgerow_agent.core.kernels.deviation import EPSILON, divide_by_deviation, set_factor
from hedgerow_plans.graph.ir import Order
from hedgerow_plans.graph.ops.batch_norm import is_batch
from hedgerow_plans.graph.tiles import NORM_TILE_ELEMENTS, channels_per_tile


def by_channel(images: Array) -> Array:
    """Return a view (sample, channel, pixel)."""
    return images.reshape(len(images), images.shape[1], -1)


def bind_batch_norm(call: Call) -> Bound:
    """Return (x - mean) / deviation * weight + bias, and the batch's mean and variance if asked for."""
    if call.order is Order.PIXELS:
        return by_pixels.bind_with_batch(call) if is_batch(call.node) else by_pixels.bind_with_running(call)
    return _bind_with_batch(call) if is_batch(call.node) else _bind_with_running(call)


def _bind_with_running(call: Call) -> Bound:
    x, weight, bias, mean, variance = call.inputs
    source, output, epsilon = by_channel(x), by_channel(call.outputs[0]), call.number("epsilon", EPSILON)
    scratch = ScratchCutter(call)
    factor, shift = scratch.take(mean.shape, x.dtype), scratch.take(mean.shape, x.dtype)

    def run() -> None:
        set_factor(factor, weight, variance, epsilon)
        np.multiply(mean, factor, out=shift)
        np.subtract(bias, shift, out=shift)
        np.multiply(source, factor[:, np.newaxis], out=output)
        np.add(output, shift[:, np.newaxis], out=output)

    return run


def _bind_with_batch(call: Call) -> Bound:
    x, weight, bias = call.inputs[:3]
    source, output, epsilon = by_channel(x), by_channel(call.outputs[0]), call.number("epsilon", EPSILON)
    scratch = ScratchCutter(call)
    parts = scratch.take(source.shape[:2], x.dtype)
    factor = scratch.take(weight.shape, x.dtype)
    mean, variance = call.outputs[1] if len(call.outputs) > 1 else scratch.take((2, *weight.shape), x.dtype)
    count = source.size // weight.size

    def run() -> None:
        np.add.reduce(source, axis=2, out=parts)
        np.add.reduce(parts, axis=0, out=mean)
        np.divide(mean, count, out=mean)
        np.subtract(source, mean[:, np.newaxis], out=output)
        np.vecdot(output, output, out=parts)
        np.add.reduce(parts, axis=0, out=variance)
        np.divide(variance, count, out=variance)
        set_factor(factor, weight, variance, epsilon)
        np.multiply(output, factor[:, np.newaxis], out=output)
        np.add(output, bias[:, np.newaxis], out=output)

    return run


def bind_batch_norm_grad_input(call: Call) -> Bound:
    """Return dx; the batch's own mean and variance depend on x, running ones do not."""
    if call.order is Order.PIXELS:
        return by_pixels.bind_grad_with_batch(call) if is_batch(call.node) else by_pixels.bind_grad_with_running(call)
    if len(call.inputs) == 6:
        return _bind_grad_with_sums(call)
    return _bind_grad_with_batch(call) if is_batch(call.node) else _bind_grad_with_running(call)


def _bind_grad_with_running(call: Call) -> Bound:
    gradient, variance, weight = call.inputs
    incoming, output = by_channel(gradient), by_channel(call.outputs[0])
    factor, epsilon = ScratchCutter(call).take(weight.shape, gradient.dtype), call.number("epsilon", EPSILON)

    def run() -> None:
        set_factor(factor, weight, variance, epsilon)
        np.multiply(incoming, factor[:, np.newaxis], out=output)

    return run


def _bind_grad_with_batch(call: Call) -> Bound:
    """With c = x - mean: dx = weight / deviation * (dy - mean(dy) - c * mean(dy c) / variance)."""
    gradient, x, (mean, variance), weight = call.inputs
    incoming, source, output = by_channel(gradient), by_channel(x), by_channel(call.outputs[0])
    scratch, epsilon = ScratchCutter(call), call.number("epsilon", EPSILON)
    parts = scratch.take(source.shape[:2], x.dtype)
    along, level, factor = (scratch.take(weight.shape, x.dtype) for _ in range(3))
    count = source.size // weight.size

    def run() -> None:
        np.subtract(source, mean[:, np.newaxis], out=output)
        np.vecdot(incoming, output, out=parts)
        np.add.reduce(parts, axis=0, out=along)
        np.add.reduce(incoming, axis=2, out=parts)
        np.add.reduce(parts, axis=0, out=level)
        np.divide(level, count, out=level)
        np.add(variance, epsilon, out=factor)
        np.divide(along, factor, out=along)
        np.divide(along, count, out=along)
        set_factor(factor, weight, variance, epsilon)
        np.multiply(output, along[:, np.newaxis], out=output)
        np.subtract(incoming, output, out=output)
        np.subtract(output, level[:, np.newaxis], out=output)
        np.multiply(output, factor[:, np.newaxis], out=output)

    return run


def _bind_grad_with_sums(call: Call) -> Bound:
    """Return the same from the gradients of weight and bias, which are the sums over dy that it needs."""
    gradient, x, (mean, variance), weight, along, level = call.inputs
    incoming, source, output = by_channel(gradient), by_channel(x), by_channel(call.outputs[0])
    scratch, epsilon = ScratchCutter(call), call.number("epsilon", EPSILON)
    slope, shift, factor = (scratch.take(weight.shape, x.dtype) for _ in range(3))
    count = source.size // weight.size

    def run() -> None:
        np.add(variance, epsilon, out=slope)
        np.sqrt(slope, out=slope)
        np.divide(weight, slope, out=factor)
        np.divide(along, slope, out=slope)
        np.divide(slope, count, out=slope)
        np.divide(level, count, out=shift)
        np.subtract(source, mean[:, np.newaxis], out=output)
        np.multiply(output, slope[:, np.newaxis], out=output)
        np.subtract(incoming, output, out=output)
        np.subtract(output, shift[:, np.newaxis], out=output)
        np.multiply(output, factor[:, np.newaxis], out=output)

    return run


def bind_batch_norm_grad_weight(call: Call) -> Bound:
    """Return the sum of dy * (x - mean) / deviation over samples and pixels."""
    if call.order is Order.PIXELS:
        return by_pixels.bind_grad_weight(call)
    gradient, x, *statistics = call.inputs
    mean, variance = statistics[0] if is_batch(call.node) else statistics
    (output,), epsilon, scratch = call.outputs, call.number("epsilon", EPSILON), ScratchCutter(call)
    parts = scratch.take(x.shape[:2], x.dtype)
    deviation = scratch.take(output.shape, x.dtype)
    shape = (len(x), x.shape[1], 1, -1)
    means = np.broadcast_to(mean, x.shape[:2])
    multiply = centred_products((gradient.reshape(shape), x.reshape(shape)), means, parts[:, :, np.newaxis], scratch)

    def run() -> None:
        multiply()
        np.add.reduce(parts, axis=0, out=output)
        divide_by_deviation(output, variance, epsilon, deviation)

    return run


def centred_products(pair: tuple[Array, Array], means: Array, sums: Array, scratch: ScratchCutter) -> Bound:
    """Return the call that sums dy * (x - mean) over pixels; dy and x are (sample, group, channel, pixel)."""
    gradient, source = pair
    tiles = list(channel_tiles(source))
    work = scratch.take(source[tiles[0]].shape, source.dtype)

    def run() -> None:
        for tile in tiles:
            np.subtract(source[tile], means[tile[:2]][:, np.newaxis, np.newaxis], out=work)
            np.vecdot(gradient[tile], work, out=sums[tile])

    return run


def channel_tiles(images: Array) -> list[tuple[int, slice, slice]]:
    """Return the sample, groups and channels of all tiles of an array (sample, group, channel, pixel)."""
    samples, groups, channels, pixels = images.shape
    whole, part = channels_per_tile(groups, channels, pixels, NORM_TILE_ELEMENTS)
    return [
        (sample, slice(group, group + whole), slice(channel, channel + part))
        for sample in range(samples)
        for group in range(0, groups, whole)
        for channel in range(0, channels, part)
    ]


def bind_update_running_statistics(call: Call) -> Bound:
    """Move the running mean and variance towards the batch's, the variance as that of a sample (n - 1)."""
    (statistics,), (mean, variance) = call.inputs, call.updates
    momentum, count = call.number("momentum", 0.1), call.integer("samples", 2)
    work = ScratchCutter(call).take(mean.shape, mean.dtype)

    def move(running: Array, values: Array, factor: float) -> None:
        np.multiply(values, factor, out=work)
        np.subtract(work, running, out=work)
        np.multiply(work, momentum, out=work)
        np.add(running, work, out=running)

    def run() -> None:
        move(mean, statistics[0], 1.0)
        move(variance, statistics[1], count / (count - 1))

    return run


KERNELS = {
    "batch_norm": bind_batch_norm,
    "batch_norm_grad_input": bind_batch_norm_grad_input,
    "batch_norm_grad_weight": bind_batch_norm_grad_weight,
    "update_running_statistics": bind_update_running_statistics,
}
