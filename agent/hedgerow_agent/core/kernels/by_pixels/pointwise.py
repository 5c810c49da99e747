"""Convolutions with one pixel: a matrix product over all pixels of all samples, without scratch."""

import numpy as np

from hedgerow_agent.core.kernels.by_pixels.shape import Layer
from hedgerow_agent.core.kernels.call import Array, Bound
from hedgerow_agent.core.kernels.sinks import Sink
from hedgerow_plans.graph.ir import Order


def _pixels_by_channels(array: Array, order: Order) -> Array:
    """Return images as a matrix (pixels of all samples, channels), whichever of the two lies together."""
    if order is Order.PIXELS:
        return array.reshape(-1, array.shape[-1])
    return array.reshape(len(array), -1).T


def bind_forward(layer: Layer) -> Bound:
    """Return the convolution; the smaller matrix comes first where channels are rows."""
    source, result = _matrices(layer)
    weight = layer.weight[:, :, 0, 0]
    if layer.result_order is Order.CHANNELS:
        return lambda: np.matmul(weight, source.T, out=result.T)
    return lambda: np.matmul(source, weight.T, out=result)


def bind_grad_input(layer: Layer) -> Bound:
    """Return the gradient of the images."""
    source, result = _matrices(layer)
    weight = layer.weight[:, :, 0, 0]
    if layer.image_order is Order.CHANNELS:
        return lambda: np.matmul(weight.T, result.T, out=source.T)
    return lambda: np.matmul(result, weight, out=source)


def bind_grad_weight(layer: Layer, sink: Sink) -> Bound:
    """Return the gradient of the weight."""
    source, result = _matrices(layer)
    return sink.product((result.T, source), layer.weight[:, :, 0, 0])


def _matrices(layer: Layer) -> tuple[Array, Array]:
    return (
        _pixels_by_channels(layer.image, layer.image_order),
        _pixels_by_channels(layer.result, layer.result_order),
    )
