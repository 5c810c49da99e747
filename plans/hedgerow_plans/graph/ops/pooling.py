"""Pooling of images, and the gradient that goes back to where the largest element was."""

from hedgerow_plans.graph.ir import DType, Node, Tensor
from hedgerow_plans.graph.operator import AttributeRule, Backward, Call, Kind, Operator, Shape, describe
from hedgerow_plans.graph.ops import expect
from hedgerow_plans.graph.tiles import BYTE_TILE_ELEMENTS, images_per_tile

_ATTRIBUTES = {"kernel": AttributeRule(Kind.INTEGER), "stride": AttributeRule(Kind.INTEGER)}


def _pooled_shape(call: Call, image: Shape) -> Shape:
    kernel, stride = call.integer("kernel"), call.integer("stride")
    call.require(kernel <= 16, f"the kernel is {kernel}; a position in the window must fit one byte, so 16 at most")
    call.require(len(image) == 3, f"an image has 3 axes, not shape {describe(image)}")
    channels, height, width = image
    problem = f"the window {kernel} is larger than the image {describe(image)}; pool less often or with a smaller one"
    call.require(kernel <= min(height, width), problem)
    return channels, (height - kernel) // stride + 1, (width - kernel) // stride + 1


def _infer_max_pool2d(call: Call) -> tuple[Tensor, ...]:
    x = expect.samples(call, call.inputs[0], rank=3)
    shape = _pooled_shape(call, x.shape)
    y = call.output(0, shape)
    return (y, call.output(1, shape, DType.UINT8)) if len(call.node.outputs) > 1 else (y,)


def _infer_grad(call: Call) -> tuple[Tensor, ...]:
    gradient = expect.samples(call, call.inputs[0], rank=3)
    index = expect.samples(call, call.inputs[1], rank=3, dtype=DType.UINT8)
    for tensor in (gradient, index):
        expect.shape(call, tensor, _pooled_shape(call, call.shape()))
    return (call.output(0, call.shape()),)


def _position_bytes(call: Call, pooled: Tensor) -> int:
    """Return one byte per window of a tile of images, while positions are compared."""
    return pooled.elements * images_per_tile(call.micro_batch, pooled.elements, BYTE_TILE_ELEMENTS)


def _grad(ask: Backward) -> Node:
    inputs = (ask.gradient, ask.node.outputs[1])
    return ask.call("max_pool2d_grad", inputs, {**ask.node.attributes, "shape": ask.input(0).shape})


OPERATORS = (
    Operator(
        "max_pool2d",
        _infer_max_pool2d,
        outputs=(1, 2),
        attributes=_ATTRIBUTES,
        flops=lambda call: call.samples(call.outputs[0]) * call.integer("kernel") ** 2,
        scratch_bytes=lambda call: _position_bytes(call, call.outputs[0]) if len(call.outputs) > 1 else 0,
        backward=(_grad,),
        saved="index",
    ),
    Operator(
        "max_pool2d_grad",
        _infer_grad,
        inputs=(2, 2),
        attributes={**_ATTRIBUTES, "shape": AttributeRule(Kind.SHAPE)},
        flops=lambda call: call.samples(call.inputs[0]),
        scratch_bytes=lambda call: _position_bytes(call, call.inputs[0]),
    ),
)
