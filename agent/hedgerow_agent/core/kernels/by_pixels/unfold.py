"""Convolutions by unfolded patches of images by pixels or by channels, some rows of the result at a time."""

import numpy as np

from hedgerow_agent.core.kernels.by_pixels.patches import Room, Tile, beside, cut, cut_to_fold
from hedgerow_agent.core.kernels.by_pixels.shape import Layer
from hedgerow_agent.core.kernels.call import Array, Bound, ScratchCutter
from hedgerow_agent.core.kernels.sinks import Factors, Sink
from hedgerow_plans.graph.ir import Order


def _weight_matrix(layer: Layer) -> Array:
    """Return the weight as (window, outputs), in the order of a patch."""
    if layer.image_order is Order.PIXELS:
        return layer.window.reshape(layer.sizes.window, layer.sizes.outputs)
    return layer.weight.reshape(layer.sizes.outputs, layer.sizes.window).T


def bind_forward(layer: Layer, scratch: ScratchCutter) -> Bound:
    """Return the convolution, with the bias added while a tile is near."""
    room, weight = Room.take(layer, scratch), _weight_matrix(layer)
    margins, tiles = beside(layer, room), list(cut(layer, room))
    turned, bias = layer.result_order is Order.CHANNELS, layer.bias

    def run() -> None:
        for part in margins:
            part.fill(0)
        for tile in tiles:
            tile.unfold()
            if turned:
                np.matmul(weight.T, tile.patches.T, out=tile.result.T)
            else:
                np.matmul(tile.patches, weight, out=tile.result)
            if bias is not None:
                np.add(tile.result, bias, out=tile.result)

    return run


def bind_grad_input(layer: Layer, scratch: ScratchCutter) -> Bound:
    """Return the gradient of the images: patches of gradients, folded back by adding."""
    weight = _weight_matrix(layer)
    tiles = list(cut_to_fold(layer, Room.take(layer, scratch)))
    turned, output = layer.image_order is Order.CHANNELS, layer.image

    def run() -> None:
        output.fill(0)
        for tile in tiles:
            if turned:
                np.matmul(weight, tile.result.T, out=tile.patches.T)
            else:
                np.matmul(tile.result, weight.T, out=tile.patches)
            tile.fold()

    return run


def bind_grad_weight(layer: Layer, scratch: ScratchCutter, sink: Sink) -> Bound:
    """Return the gradient of the weight, summed over the tiles.

    By channels it is turned when it is complete: for the turned product itself BLAS takes up to twice as long.
    """
    room, output = Room.take(layer, scratch), _weight_matrix(layer)
    margins, tiles = beside(layer, room), list(cut(layer, room))
    turned = layer.image_order is Order.CHANNELS
    sums = scratch.take(output.shape, output.dtype) if turned else output
    calls = sink.sum([_factors(layer, tile) for tile in tiles], sums, scratch)

    def run() -> None:
        for part in margins:
            part.fill(0)
        for tile, multiply in zip(tiles, calls, strict=True):
            tile.unfold()
            multiply()
        if turned:
            np.copyto(output, sums)

    return run


def _factors(layer: Layer, tile: Tile) -> Factors:
    """Return what is multiplied for the gradient of (window, outputs): a matrix each, or one for each row."""
    sizes = layer.sizes
    if layer.image_order is Order.PIXELS or not sizes.stacked_rows:
        return tile.patches.T, tile.result
    row = sizes.result[1] * sizes.samples
    by_row = tile.patches.reshape(-1, row, sizes.window)
    return by_row.transpose(0, 2, 1), tile.result.reshape(-1, row, sizes.outputs)
