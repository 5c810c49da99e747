"""Convolutions by unfolded patches of images by pixels or by channels, some rows of the result at a time."""

import numpy as np

from hedgerow_agent.core.kernels.by_pixels.patches import Room, cut, cut_to_fold
from hedgerow_agent.core.kernels.by_pixels.shape import Layer
from hedgerow_agent.core.kernels.call import Array, Bound, ScratchCutter
from hedgerow_agent.core.kernels.sinks import Sink
from hedgerow_plans.graph.ir import Order


def _weight_matrix(layer: Layer) -> Array:
    """Return the weight as (window, outputs), in the order of a patch."""
    if layer.image_order is Order.PIXELS:
        return layer.window.reshape(layer.sizes.window, layer.sizes.outputs)
    return layer.weight.reshape(layer.sizes.outputs, layer.sizes.window).T


def _padded(layer: Layer) -> bool:
    whole = slice(0, layer.sizes.result[1])
    return len(layer.taps) < layer.sizes.kernel[0] * layer.sizes.kernel[1] or any(
        tap.output[1] != whole for tap in layer.taps
    )


def bind_forward(layer: Layer, scratch: ScratchCutter) -> Bound:
    """Return the convolution, with the bias added while a tile is near."""
    room, weight, padded = Room.take(layer, scratch), _weight_matrix(layer), _padded(layer)
    tiles = list(cut(layer, room))
    turned, bias = layer.result_order is Order.CHANNELS, layer.bias

    def run() -> None:
        if padded:
            room.matrix.fill(0)
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
    """Return the gradient of the weight, summed over the tiles."""
    room, output, padded = Room.take(layer, scratch), _weight_matrix(layer), _padded(layer)
    tiles = list(cut(layer, room))
    terms = [(tile.patches.T, tile.result) for tile in tiles]
    if layer.image_order is Order.CHANNELS:
        output, terms = output.T, [(second.T, first.T) for first, second in terms]
    calls = sink.sum(terms, output, scratch)

    def run() -> None:
        if padded:
            room.matrix.fill(0)
        for tile, multiply in zip(tiles, calls, strict=True):
            tile.unfold()
            multiply()

    return run
