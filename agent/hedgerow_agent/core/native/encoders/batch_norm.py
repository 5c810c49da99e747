"""Batch normalisation of images by pixels: sums in strands, what follows for each channel, then all pixels.

`norms_by_samples` has that of images as their shapes say.
"""

from hedgerow_agent.core.kernels.call import Array, Call
from hedgerow_agent.core.native.draft import Block, Draft, Drafts, Room
from hedgerow_agent.core.native.encoders import norms_by_samples
from hedgerow_agent.core.native.encoders.dense import join, strands_of
from hedgerow_plans.graph.ir import Order
from hedgerow_plans.graph.ops.batch_norm import is_batch

_EPSILON = 1e-5


def _stretch(x: Array, factor: Array, shift: Array | None, output: Array) -> Draft:
    pixels = x.size // factor.size
    return Draft("stretch", (x, factor, shift, output), (pixels, factor.size), pixels, 2 * x.size)


def _batch_norm(call: Call, _block: Block) -> Drafts | None:
    if call.order is Order.SAMPLES:
        return norms_by_samples.forward(call)
    return _with_batch(call) if is_batch(call.node) else _with_running(call)


def _with_running(call: Call) -> Drafts:
    x, weight, bias, mean, variance = call.inputs
    room, channels, epsilon = Room(call), weight.size, call.number("epsilon", _EPSILON)
    factor, shift = room.take(channels), room.take(channels)
    operands = (weight, bias, mean, variance, factor, shift)
    settle = Draft("settle_running", operands, (0, channels), channels, channels, (epsilon,))
    return settle, _stretch(x, factor, shift, call.outputs[0])


def _with_batch(call: Call) -> Drafts | None:
    x, weight, bias = call.inputs[:3]
    room, channels = Room(call), weight.size
    pixels = x.size // channels
    factor, shift = room.take(channels), room.take(channels)
    statistics = call.outputs[1] if len(call.outputs) > 1 else room.take(2 * channels)
    strands = strands_of(pixels, room.left, 2 * channels)
    if not strands:
        return None
    partial, sizes = room.take(2 * strands * channels), (pixels, channels, strands)
    operands = (partial, statistics, weight, bias, factor, shift)
    epsilon = call.number("epsilon", _EPSILON)
    return (
        Draft("strand_moments", (x, partial), sizes, strands, 2 * x.size),
        Draft("settle_norm", operands, sizes, channels, 4 * channels * strands, (epsilon,), grain=16),
        _stretch(x, factor, shift, call.outputs[0]),
    )


def _grad_input(call: Call, _block: Block) -> Drafts | None:
    if call.order is Order.SAMPLES:
        return norms_by_samples.grad_input(call)
    if is_batch(call.node):
        return _grad_with_batch(call)
    gradient, variance, weight = call.inputs
    factor = Room(call).take(weight.size)
    operands = (weight, None, None, variance, factor, None)
    numbers = (call.number("epsilon", _EPSILON),)
    settle = Draft("settle_running", operands, (0, weight.size), weight.size, weight.size, numbers)
    return settle, _stretch(gradient, factor, None, call.outputs[0])


def _grad_with_batch(call: Call) -> Drafts | None:
    gradient, x, statistics, weight, *sums = call.inputs
    room, channels = Room(call), weight.size
    pixels, epsilon = x.size // channels, call.number("epsilon", _EPSILON)
    factor, slope, shift = (room.take(channels) for _ in range(3))
    before: Drafts | None = ()
    if not sums:
        sums = [room.take(channels), room.take(channels)]
        before = _sums(call, sums, room)
    if before is None:
        return None
    operands, sizes = (statistics, weight, *sums, factor, slope, shift), (pixels, channels)
    return (
        *before,
        Draft("settle_grad", operands, sizes, channels, 4 * channels, (epsilon,), grain=16),
        Draft("blend", (gradient, x, factor, slope, shift, call.outputs[0]), sizes, pixels, 3 * x.size),
    )


def _sums(call: Call, sums: list[Array], room: Room) -> Drafts | None:
    """Return what sums up dy (x - mean) / deviation, and dy."""
    gradient, x, (mean, variance), weight = call.inputs
    pixels, channels = x.size // weight.size, weight.size
    strands = strands_of(pixels, room.left, 2 * channels)
    if not strands:
        return None
    along, level = (room.take(strands * channels) for _ in range(2))
    operands, sizes = (gradient, x, mean, along, level), (pixels, channels, strands)
    return (
        Draft("strand_products", operands, sizes, strands, 2 * x.size),
        join(along, sums[0], strands, variance, call.number("epsilon", _EPSILON)),
        join(level, sums[1], strands),
    )


def _grad_weight(call: Call, _block: Block) -> Drafts | None:
    if call.order is Order.SAMPLES:
        return norms_by_samples.grad_weight(call)
    gradient, x, *statistics = call.inputs
    (output,), room = call.outputs, Room(call)
    mean, variance = statistics[0] if is_batch(call.node) else statistics
    pixels = x.size // output.size
    strands = strands_of(pixels, room.left, output.size)
    if not strands:
        return None
    partial, epsilon = room.take(strands * output.size), call.number("epsilon", _EPSILON)
    return (
        Draft("strand_products", (gradient, x, mean, partial), (pixels, output.size, strands), strands, 2 * x.size),
        join(partial, output, strands, variance, epsilon),
    )


def _update_running_statistics(call: Call, _block: Block) -> Drafts:
    (statistics,), (mean, variance) = call.inputs, call.updates
    sizes = (call.integer("samples", 2), mean.size)
    numbers = (call.number("momentum", 0.1),)
    return (Draft("follow", (statistics, mean, variance), sizes, mean.size, 4 * mean.size, numbers, grain=16),)


ENCODERS = {
    "batch_norm": _batch_norm,
    "batch_norm_grad_input": _grad_input,
    "batch_norm_grad_weight": _grad_weight,
    "update_running_statistics": _update_running_statistics,
}
