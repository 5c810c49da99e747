"""Convolutions of images (channels, height, width) and their gradients.

Images that lie sample by sample are unfolded (im2col) a tile of images at a time; `convolution_ways` has the others.
With plain SGD the gradient of a weight may go straight into it (`sgd_conv2d`), where images lie by pixels.
"""

import math

from hedgerow_plans.graph.ir import Attribute, Node, Order, Tensor
from hedgerow_plans.graph.operator import AttributeRule, Backward, Call, Kind, Operator, Shape, describe
from hedgerow_plans.graph.ops import convolution_ways as ways
from hedgerow_plans.graph.ops import expect, orders
from hedgerow_plans.graph.ops.convolution_ways import Way
from hedgerow_plans.graph.ops.dense import grad_bias
from hedgerow_plans.graph.tiles import CONVOLUTION_TILE_ELEMENTS, images_per_tile

_ATTRIBUTES = {
    "stride": AttributeRule(Kind.PAIR, default=1),
    "padding": AttributeRule(Kind.PAIR, default=0, minimum=0),
    "groups": AttributeRule(Kind.INTEGER, default=1),
    "algorithm": AttributeRule(Kind.TEXT, default=Way.UNFOLD.value, choices=tuple(Way)),
}
_GRADIENT_ATTRIBUTES = {**_ATTRIBUTES, "shape": AttributeRule(Kind.SHAPE)}


def _image_shape(call: Call, image: Shape, weight: Shape) -> Shape:
    """Return the shape of what a weight makes of an image, or raise a sentence."""
    shapes = f"an image {describe(image)} and a weight {describe(weight)}"
    call.require(len(image) == 3 and len(weight) == 4, f"it got {shapes}; give it 3 axes and 4")
    groups, stride, padding = call.integer("groups"), call.pair("stride"), call.pair("padding")
    channels, height, width = image
    outputs, group_channels, kernel_height, kernel_width = weight
    problem = f"{shapes} do not go together in {groups} groups; the weight's second axis times groups is the channels"
    call.require(group_channels * groups == channels, problem)
    call.require(outputs % groups == 0, f"{outputs} output channels cannot be split into {groups} groups")
    high, wide = height + 2 * padding[0] - kernel_height, width + 2 * padding[1] - kernel_width
    call.require(high >= 0 and wide >= 0, f"{shapes} do not go together: the kernel is larger than the padded image")
    return outputs, high // stride[0] + 1, wide // stride[1] + 1


def _infer_conv2d(call: Call) -> tuple[Tensor, ...]:
    x = expect.samples(call, call.inputs[0], rank=3)
    weight = expect.parameter(call, call.inputs[1], rank=4)
    shape = _image_shape(call, x.shape, weight.shape)
    for bias in call.inputs[2:]:
        expect.shape(call, expect.parameter(call, bias, rank=1), shape[:1])
    return (call.output(0, shape),)


def _infer_grad_input(call: Call) -> tuple[Tensor, ...]:
    gradient = expect.samples(call, call.inputs[0], rank=3)
    weight = expect.parameter(call, call.inputs[1], rank=4)
    expect.shape(call, gradient, _image_shape(call, call.shape(), weight.shape))
    return (call.output(0, call.shape()),)


def _infer_grad_weight(call: Call) -> tuple[Tensor, ...]:
    gradient = expect.samples(call, call.inputs[0], rank=3)
    x = expect.samples(call, call.inputs[1], rank=3)
    expect.shape(call, gradient, _image_shape(call, x.shape, call.shape()))
    return (call.output(0, call.shape(), batched=False),)


def _infer_sgd(call: Call) -> tuple[Tensor, ...]:
    gradient, x = (expect.samples(call, tensor, rank=3) for tensor in call.inputs)
    weight = expect.trainable(call, expect.parameter(call, call.updates[0], rank=4))
    expect.shape(call, gradient, _image_shape(call, x.shape, weight.shape))
    return ()


def _check_orders_of_sgd(call: Call) -> None:
    """Raise a sentence unless each product of a way is a part of the weight as it lies."""
    (gradient, x), weight = call.inputs, call.updates[0]
    orders.lies_as(call, x, Order.PIXELS)
    call.require(_way(call) is not Way.DEPTHWISE, "its gradient is no product; update the weight by sgd")
    ways.check_orders(call, x, weight, gradient)


def _multiplications(call: Call, image: Tensor, weight: Tensor) -> int:
    """Return the multiply-adds of one pass over all output positions, twice each."""
    return 2 * call.samples(image) * math.prod(weight.shape[1:])


def _conv2d_flops(call: Call) -> int:
    bias = call.samples(call.outputs[0]) if len(call.inputs) > 2 else 0
    return _multiplications(call, call.outputs[0], call.inputs[1]) + bias


def _unfolded(call: Call, image: Tensor, weight: Tensor) -> int:
    """Return the elements of one unfolded image, all groups; `image` is on the output's side of the layer."""
    return call.integer("groups") * math.prod(weight.shape[1:]) * math.prod(image.shape[1:])


def _tile_bytes(call: Call, image: Tensor) -> int:
    """Return the bytes of a tile of unfolded images; a 1x1 convolution reads the images as they are."""
    weight = call.inputs[1]
    if weight.shape[2:] == (1, 1) and call.pair("stride") == (1, 1) and call.pair("padding") == (0, 0):
        return 0
    elements = _unfolded(call, image, weight)
    return 4 * elements * images_per_tile(call.micro_batch, elements, CONVOLUTION_TILE_ELEMENTS)


def _way(call: Call) -> Way:
    return Way(str(call.attributes["algorithm"]))


def _sizes(call: Call, image: Tensor, weight: Tensor, result: Tensor) -> ways.Sizes:
    shapes = (image.shape, weight.shape, result.shape)
    return ways.sizes_of(call.micro_batch, shapes, call.pair("stride"), call.pair("padding"))


def _forward_scratch(call: Call) -> int:
    x, weight, y = *call.inputs[:2], call.outputs[0]
    if x.order is Order.SAMPLES:
        return _tile_bytes(call, y)
    return 4 * ways.forward_elements(_way(call), _sizes(call, x, weight, y))


def _grad_input_scratch(call: Call) -> int:
    gradient, weight, x = *call.inputs, call.outputs[0]
    if x.order is Order.SAMPLES:
        return _tile_bytes(call, gradient)
    return 4 * ways.grad_input_elements(_way(call), _sizes(call, x, weight, gradient))


def _grad_weight_scratch(call: Call) -> int:
    """Return the bytes of a tile: unfolded images, the gradient turned, and a sum if there is more than one tile."""
    gradient, x, weight = *call.inputs, call.outputs[0]
    if x.order is not Order.SAMPLES:
        sizes, by_channels = _sizes(call, x, weight, gradient), x.order is Order.CHANNELS
        return 4 * ways.grad_weight_elements(_way(call), sizes, by_channels=by_channels)
    elements = _unfolded(call, call.inputs[0], call.outputs[0]) + call.inputs[0].elements
    images = images_per_tile(call.micro_batch, elements, CONVOLUTION_TILE_ELEMENTS)
    partial = call.outputs[0].bytes(1) if images < call.micro_batch else 0
    return 4 * elements * images + partial


def _sgd_scratch(call: Call) -> int:
    gradient, x = call.inputs
    return 4 * ways.sgd_elements(_way(call), _sizes(call, x, call.updates[0], gradient))


def _attributes(ask: Backward, shape: Shape) -> dict[str, Attribute]:
    return {**ask.node.attributes, "shape": shape}


def _grad_input(ask: Backward) -> Node:
    inputs = (ask.gradient, ask.node.inputs[1])
    return ask.call("conv2d_grad_input", inputs, _attributes(ask, ask.input(0).shape))


def _grad_weight(ask: Backward) -> Node:
    inputs = (ask.gradient, ask.node.inputs[0])
    return ask.call("conv2d_grad_weight", inputs, _attributes(ask, ask.input(1).shape))


OPERATORS = (
    Operator(
        "conv2d",
        _infer_conv2d,
        inputs=(2, 3),
        attributes=_ATTRIBUTES,
        flops=_conv2d_flops,
        scratch_bytes=_forward_scratch,
        backward=(_grad_input, _grad_weight, grad_bias),
        check_orders=lambda call: ways.check_orders(call, call.inputs[0], call.inputs[1], call.outputs[0]),
    ),
    Operator(
        "conv2d_grad_input",
        _infer_grad_input,
        inputs=(2, 2),
        attributes=_GRADIENT_ATTRIBUTES,
        flops=lambda call: _multiplications(call, call.inputs[0], call.inputs[1]),
        scratch_bytes=_grad_input_scratch,
        check_orders=lambda call: ways.check_orders(call, call.outputs[0], call.inputs[1], call.inputs[0]),
    ),
    Operator(
        "conv2d_grad_weight",
        _infer_grad_weight,
        inputs=(2, 2),
        attributes=_GRADIENT_ATTRIBUTES,
        flops=lambda call: _multiplications(call, call.inputs[0], call.outputs[0]),
        scratch_bytes=_grad_weight_scratch,
        check_orders=lambda call: ways.check_orders(call, call.inputs[1], call.outputs[0], call.inputs[0]),
    ),
    Operator(
        "sgd_conv2d",
        _infer_sgd,
        inputs=(2, 2),
        outputs=(0, 0),
        updates=(1, 1),
        attributes=_ATTRIBUTES,
        flops=lambda call: _multiplications(call, call.inputs[0], call.updates[0]) + 2 * call.updates[0].elements,
        scratch_bytes=_sgd_scratch,
        check_orders=_check_orders_of_sgd,
    ),
)
