"""Kernels of the norms within a sample: rows of trailing axes, groups of channels, and rows of a weight.

Statistics are pairs (mean, inverse deviation), one per row or group; RMS norm has the inverse root mean square alone.
"""

import math

import numpy as np

from hedgerow_agent.core.kernels.batch_norm import by_channel, centred_products, channel_tiles
from hedgerow_agent.core.kernels.call import Array, Bound, Call, ScratchCutter
from hedgerow_agent.core.kernels.deviation import EPSILON
from hedgerow_agent.core.kernels.ones import ones
from hedgerow_plans.graph.tiles import ROW_TILE_ELEMENTS, images_per_tile


def _column(values: Array) -> Array:
    return values[:, np.newaxis]


def _statistics(call: Call, rows: int, numbers: int) -> Array:
    """Return where statistics go, (row, number): the second output, or scratch."""
    if len(call.outputs) > 1:
        return call.outputs[1].reshape(rows, numbers)
    return ScratchCutter(call).take((rows, numbers), call.inputs[0].dtype)


def _set_inverse(target: Array, rows: Array, epsilon: float) -> None:
    """Set each row's 1 / root mean square."""
    np.vecdot(rows, rows, out=target)
    np.divide(target, rows.shape[1], out=target)
    np.add(target, epsilon, out=target)
    np.sqrt(target, out=target)
    np.reciprocal(target, out=target)


def _set_mean(target: Array, rows: Array) -> None:
    np.matmul(rows, ones(rows.shape[1], rows.dtype), out=target)
    np.divide(target, rows.shape[1], out=target)


def _standardise(source: Array, output: Array, mean: Array, inverse: Array, epsilon: float) -> None:
    """Give each row mean 0 and deviation 1; mean and inverse may be the same array if only the latter is wanted."""
    _set_mean(mean, source)
    np.subtract(source, _column(mean), out=output)
    _set_inverse(inverse, output, epsilon)
    np.multiply(output, _column(inverse), out=output)


def bind_layer_norm(call: Call) -> Bound:
    """Return each row standardised, times weight plus bias."""
    x, weight, bias = (call.inputs[0], *(tensor.reshape(-1) for tensor in call.inputs[1:]))
    source, output = x.reshape(-1, weight.size), call.outputs[0].reshape(-1, weight.size)
    mean, inverse = _statistics(call, len(source), 2).T
    epsilon = call.number("epsilon", EPSILON)

    def run() -> None:
        _standardise(source, output, mean, inverse, epsilon)
        np.multiply(output, weight, out=output)
        np.add(output, bias, out=output)

    return run


def bind_rms_norm(call: Call) -> Bound:
    """Return each row divided by its root mean square, times weight."""
    weight = call.inputs[1].reshape(-1)
    source, output = call.inputs[0].reshape(-1, weight.size), call.outputs[0].reshape(-1, weight.size)
    (inverse,) = _statistics(call, len(source), 1).T
    epsilon = call.number("epsilon", EPSILON)

    def run() -> None:
        _set_inverse(inverse, source, epsilon)
        np.multiply(source, _column(inverse), out=output)
        np.multiply(output, weight, out=output)

    return run


def _row_tiles(rows: Array) -> list[slice]:
    tile = images_per_tile(len(rows), rows.shape[1], ROW_TILE_ELEMENTS)
    return [slice(first, first + tile) for first in range(0, len(rows), tile)]


def _centre(rows: Array, statistics: Array, output: Array) -> Array:
    """Return the rows less their means, written to `output`; those of RMS norm have none and stay where they are."""
    if statistics.shape[1] == 1:
        return rows
    np.subtract(rows, statistics[:, :1], out=output)
    return output


def bind_rows_grad_input(call: Call) -> Bound:
    """With g = dy * weight and c = centred x: dx = inverse * (g - mean(g) - c * inverse^2 * mean(g c)).

    RMS norm has no mean(g).
    """
    weight = call.inputs[3].reshape(-1)
    gradient, x, output = (array.reshape(-1, weight.size) for array in (*call.inputs[:2], *call.outputs))
    statistics = call.inputs[2].reshape(len(x), -1)
    tiles, scratch, width = _row_tiles(x), ScratchCutter(call), weight.size
    work = scratch.take((tiles[0].stop, width), x.dtype)
    along, *levels = (scratch.take((tiles[0].stop,), x.dtype) for _ in range(statistics.shape[1]))

    def change(tile: slice) -> None:
        result, inverse = output[tile], statistics[tile, -1]
        np.multiply(gradient[tile], weight, out=work)
        centred = _centre(x[tile], statistics[tile], result)
        np.vecdot(work, centred, out=along)
        np.divide(along, width, out=along)
        np.multiply(along, inverse, out=along)
        np.multiply(along, inverse, out=along)
        np.multiply(centred, _column(along), out=result)
        np.subtract(work, result, out=result)
        for level in levels:
            _set_mean(level, work)
            np.subtract(result, _column(level), out=result)
        np.multiply(result, _column(inverse), out=result)

    def run() -> None:
        for tile in tiles:
            change(tile)

    return run


def bind_rows_grad_weight(call: Call) -> Bound:
    """Return the sum over rows of dy * centred x * inverse deviation."""
    result = call.outputs[0].reshape(-1)
    gradient, x = (array.reshape(-1, result.size) for array in call.inputs[:2])
    statistics = call.inputs[2].reshape(len(x), -1)
    tiles, scratch = _row_tiles(x), ScratchCutter(call)
    work = scratch.take((tiles[0].stop, result.size), x.dtype)
    inverse = scratch.take((tiles[0].stop,), x.dtype)
    part = scratch.take(result.shape, x.dtype) if len(tiles) > 1 else result

    def add_up(tile: slice, target: Array) -> None:
        np.multiply(_centre(x[tile], statistics[tile], work), gradient[tile], out=work)
        np.copyto(inverse, statistics[tile, -1])
        np.matmul(inverse, work, out=target)

    def run() -> None:
        add_up(tiles[0], result)
        for tile in tiles[1:]:
            add_up(tile, part)
            np.add(result, part, out=result)

    return run


def bind_layer_norm_grad_bias(call: Call) -> Bound:
    """Return the sum of dy over rows."""
    result = call.outputs[0].reshape(-1)
    gradient = call.inputs[0].reshape(-1, result.size)
    each = ones(len(gradient), gradient.dtype)
    return lambda: np.matmul(each, gradient, out=result)


def bind_group_norm(call: Call) -> Bound:
    """Return each group of channels standardised, times weight plus bias per channel."""
    x, weight, bias = call.inputs
    rows = len(x) * call.integer("groups", 1)
    source, output, images = x.reshape(rows, -1), call.outputs[0].reshape(rows, -1), by_channel(call.outputs[0])
    mean, inverse = _statistics(call, rows, 2).T
    epsilon = call.number("epsilon", EPSILON)

    def run() -> None:
        _standardise(source, output, mean, inverse, epsilon)
        np.multiply(images, _column(weight), out=images)
        np.add(images, _column(bias), out=images)

    return run


def _by_group(call: Call, images: Array) -> Array:
    """Return a view (sample, group, channel, pixel)."""
    groups = call.integer("groups", 1)
    return images.reshape(len(images), groups, images.shape[1] // groups, -1)


def bind_group_norm_grad_input(call: Call) -> Bound:
    """As for rows, with a weight per channel; the weighted gradient exists a tile at a time only."""
    gradient, x, output = (_by_group(call, array) for array in (*call.inputs[:2], *call.outputs))
    statistics, weight = call.inputs[2], call.inputs[3].reshape(x.shape[1:3])
    mean, inverse = (statistics[:, :, at, np.newaxis, np.newaxis] for at in range(2))
    scratch, tiles = ScratchCutter(call), channel_tiles(x)
    parts, levels = (scratch.take(x.shape[:3], x.dtype) for _ in range(2))
    along, level = (scratch.take(x.shape[:2], x.dtype) for _ in range(2))
    work = scratch.take(x[tiles[0]].shape, x.dtype)
    count = math.prod(x.shape[2:])

    def add_up(channels: Array, groups: Array) -> None:
        np.multiply(channels, weight, out=channels)
        np.add.reduce(channels, axis=2, out=groups)
        np.divide(groups, count, out=groups)

    def run() -> None:
        np.subtract(x, mean, out=output)
        np.multiply(output, inverse, out=output)
        np.vecdot(gradient, output, out=parts)
        add_up(parts, along)
        np.add.reduce(gradient, axis=3, out=levels)
        add_up(levels, level)
        np.multiply(output, along[:, :, np.newaxis, np.newaxis], out=output)
        for tile in tiles:
            np.multiply(gradient[tile], weight[tile[1:]][..., np.newaxis], out=work)
            np.subtract(work, output[tile], out=output[tile])
        np.subtract(output, level[:, :, np.newaxis, np.newaxis], out=output)
        np.multiply(output, inverse, out=output)

    return run


def bind_group_norm_grad_weight(call: Call) -> Bound:
    """Return the sum of dy * normalised x over samples and pixels."""
    gradient, x = (_by_group(call, array) for array in call.inputs[:2])
    statistics, (output,), scratch = call.inputs[2], call.outputs, ScratchCutter(call)
    parts = scratch.take(x.shape[:3], x.dtype)
    multiply = centred_products((gradient, x), statistics[:, :, 0], parts, scratch)
    inverse, result = statistics[:, :, 1:], output.reshape(x.shape[1:3])

    def run() -> None:
        multiply()
        np.multiply(parts, inverse, out=parts)
        np.add.reduce(parts, axis=0, out=result)

    return run


def bind_weight_standardisation(call: Call) -> Bound:
    """Return the weight with mean 0 and deviation 1 for each output."""
    weight = call.inputs[0]
    rows, output = weight.reshape(len(weight), -1), call.outputs[0].reshape(len(weight), -1)
    inverse, epsilon = ScratchCutter(call).take((len(weight),), weight.dtype), call.number("epsilon", EPSILON)
    return lambda: _standardise(rows, output, inverse, inverse, epsilon)


def bind_weight_standardisation_grad(call: Call) -> Bound:
    """Return dw = inverse * (dy - mean(dy) - n * mean(dy n)), with n the standardised weight made again."""
    gradient, weight, output = (array.reshape(len(array), -1) for array in (*call.inputs, *call.outputs))
    scratch, epsilon, width = ScratchCutter(call), call.number("epsilon", EPSILON), weight.shape[1]
    inverse, along, level = (scratch.take((len(weight),), weight.dtype) for _ in range(3))

    def run() -> None:
        _standardise(weight, output, inverse, inverse, epsilon)
        np.vecdot(gradient, output, out=along)
        np.divide(along, width, out=along)
        np.add.reduce(gradient, axis=1, out=level)
        np.divide(level, width, out=level)
        np.multiply(output, _column(along), out=output)
        np.subtract(gradient, output, out=output)
        np.subtract(output, _column(level), out=output)
        np.multiply(output, _column(inverse), out=output)

    return run


KERNELS = {
    "layer_norm": bind_layer_norm,
    "layer_norm_grad_input": bind_rows_grad_input,
    "layer_norm_grad_weight": bind_rows_grad_weight,
    "layer_norm_grad_bias": bind_layer_norm_grad_bias,
    "rms_norm": bind_rms_norm,
    "rms_norm_grad_input": bind_rows_grad_input,
    "rms_norm_grad_weight": bind_rows_grad_weight,
    "group_norm": bind_group_norm,
    "group_norm_grad_input": bind_group_norm_grad_input,
    "group_norm_grad_weight": bind_group_norm_grad_weight,
    "weight_standardisation": bind_weight_standardisation,
    "weight_standardisation_grad": bind_weight_standardisation_grad,
}
