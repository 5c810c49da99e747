"""Bilinear interpolation of images to another size, and its gradient.

Along each axis every new pixel is a weighted mean of two old ones, so the whole is a matrix from the left and one from
the right. The kernels keep both matrices, and a tile of images that is done along one axis, in scratch.
"""

import math

from hedgerow_plans.graph.ir import Node, Tensor
from hedgerow_plans.graph.operator import AttributeRule, Backward, Call, Kind, Operator, describe
from hedgerow_plans.graph.ops import expect
from hedgerow_plans.graph.tiles import CONVOLUTION_TILE_ELEMENTS, images_per_tile

_CORNERS = AttributeRule(Kind.TEXT, default="halved", choices=("halved", "aligned"))
"""Where pixels lie: "halved" puts them at the middle of equal cells, "aligned" puts the outermost ones on the edge."""


def _infer_upsample(call: Call) -> tuple[Tensor, ...]:
    x, size = expect.samples(call, call.inputs[0], rank=3), call.shape("size")
    call.require(len(size) == 2, f"the size is {describe(size)}; give it rows and columns")
    return (call.output(0, (x.shape[0], *size)),)


def _infer_grad(call: Call) -> tuple[Tensor, ...]:
    gradient = expect.samples(call, call.inputs[0], rank=3)
    call.require(len(call.shape()) == 3, f"an image has 3 axes, not shape {describe(call.shape())}")
    expect.shape(call, gradient, (call.shape()[0], *gradient.shape[1:]))
    return (call.output(0, call.shape()),)


def _scratch(call: Call, small: Tensor, large: Tensor) -> int:
    """Return the bytes of both matrices and of a tile with old rows and new columns."""
    matrices = small.shape[1] * large.shape[1] + small.shape[2] * large.shape[2]
    half_done = small.shape[0] * small.shape[1] * large.shape[2]
    images = images_per_tile(call.micro_batch, half_done, CONVOLUTION_TILE_ELEMENTS)
    return 4 * (matrices + half_done * images)


def _flops(call: Call, new: Tensor) -> int:
    """Return four products and three sums for each new pixel."""
    return 7 * math.prod(new.full_shape(call.micro_batch))


def _grad(ask: Backward) -> Node:
    corners = ask.node.attributes.get("corners", "halved")
    return ask.call("upsample_bilinear_grad", (ask.gradient,), {"corners": corners, "shape": ask.input(0).shape})


OPERATORS = (
    Operator(
        "upsample_bilinear",
        _infer_upsample,
        attributes={"size": AttributeRule(Kind.SHAPE), "corners": _CORNERS},
        flops=lambda call: _flops(call, call.outputs[0]),
        scratch_bytes=lambda call: _scratch(call, call.inputs[0], call.outputs[0]),
        backward=(_grad,),
    ),
    Operator(
        "upsample_bilinear_grad",
        _infer_grad,
        attributes={"shape": AttributeRule(Kind.SHAPE), "corners": _CORNERS},
        flops=lambda call: _flops(call, call.inputs[0]),
        scratch_bytes=lambda call: _scratch(call, call.outputs[0], call.inputs[0]),
    ),
)
