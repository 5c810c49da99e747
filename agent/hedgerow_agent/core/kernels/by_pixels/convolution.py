"""Convolutions of images by pixels or by channels, the way that was chosen when they were planned."""

from collections.abc import Callable, Mapping

import numpy as np

from hedgerow_agent.core.kernels.by_pixels import depthwise, pointwise, taps, unfold, winograd
from hedgerow_agent.core.kernels.by_pixels.shape import Layer, layer_of
from hedgerow_agent.core.kernels.call import Array, Bound, Call, ScratchCutter
from hedgerow_agent.core.kernels.sinks import Descent, Gradient, Sink
from hedgerow_plans.graph.ir import Order
from hedgerow_plans.graph.ops.convolution_ways import Way

_Bind = Callable[[Layer, ScratchCutter], Bound]
_FORWARD: Mapping[Way, _Bind] = {
    Way.UNFOLD: unfold.bind_forward,
    Way.TAPS: taps.bind_forward,
    Way.WINOGRAD: winograd.bind_forward,
    Way.DEPTHWISE: depthwise.bind_forward,
}
_GRAD_INPUT: Mapping[Way, _Bind] = {
    Way.UNFOLD: unfold.bind_grad_input,
    Way.TAPS: taps.bind_grad_input,
    Way.WINOGRAD: winograd.bind_grad_input,
    Way.DEPTHWISE: depthwise.bind_grad_input,
}
_WEIGHT: Mapping[Way, Callable[[Layer, ScratchCutter, Sink], Bound]] = {
    Way.UNFOLD: unfold.bind_grad_weight,
    Way.TAPS: taps.bind_grad_weight,
    Way.WINOGRAD: winograd.bind_grad_weight,
}
"""Ways whose gradient of the weight is made of products."""


def bind_forward(call: Call) -> Bound:
    """Return the convolution of x with w, plus b."""
    (x, weight, *biases), (y,) = call.inputs, call.outputs
    layer = layer_of(call, (x, call.input_orders[0]), weight, (y, call.output_orders[0]), *biases)
    multiply = pointwise.bind_forward(layer) if layer.pointwise else _FORWARD[layer.way](layer, ScratchCutter(call))
    return multiply if layer.bias is None or layer.unfolds else _with_bias(multiply, layer, layer.bias)


def _with_bias(multiply: Bound, layer: Layer, bias: Array) -> Bound:
    output = layer.result
    if layer.result_order is Order.CHANNELS:
        bias = bias[:, np.newaxis, np.newaxis, np.newaxis]

    def run() -> None:
        multiply()
        np.add(output, bias, out=output)

    return run


def bind_grad_input(call: Call) -> Bound:
    """Return the gradient of x."""
    (gradient, weight), (x,) = call.inputs, call.outputs
    layer = layer_of(call, (x, call.output_orders[0]), weight, (gradient, call.input_orders[0]))
    return pointwise.bind_grad_input(layer) if layer.pointwise else _GRAD_INPUT[layer.way](layer, ScratchCutter(call))


def bind_grad_weight(call: Call) -> Bound:
    """Return the gradient of w."""
    return _bind_weight(call, call.outputs[0], Gradient())


def bind_sgd(call: Call) -> Bound:
    """Subtract the gradient of w times the rate from w."""
    return _bind_weight(call, call.updates[0], Descent(call.runtime))


def _bind_weight(call: Call, weight: Array, sink: Sink) -> Bound:
    gradient, x = call.inputs
    layer = layer_of(call, (x, call.input_orders[1]), weight, (gradient, call.input_orders[0]))
    if layer.pointwise:
        return pointwise.bind_grad_weight(layer, sink)
    if layer.way is Way.DEPTHWISE:
        return depthwise.bind_grad_weight(layer, ScratchCutter(call))
    return _WEIGHT[layer.way](layer, ScratchCutter(call), sink)
