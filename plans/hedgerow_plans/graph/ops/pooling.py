"""Pooling of images, and the gradients: back to where the largest element was, or evenly to the whole window.

Padding of a maximum never wins; padding of an average counts as zeros, so that every window has the same divisor.
"""

from hedgerow_plans.graph.ir import DType, Node, Order, Tensor
from hedgerow_plans.graph.operator import AttributeRule, Backward, Call, Kind, Operator, Shape, describe
from hedgerow_plans.graph.ops import expect, orders
from hedgerow_plans.graph.tiles import BYTE_TILE_ELEMENTS, images_per_tile, pooled_rows
from hedgerow_plans.graph.windows import find_taps, largest_part

LARGEST_WINDOW = 256
"""Positions of a window whose largest element's position is kept in one byte."""

_ATTRIBUTES = {
    "kernel": AttributeRule(Kind.PAIR),
    "stride": AttributeRule(Kind.PAIR),
    "padding": AttributeRule(Kind.PAIR, default=0, minimum=0),
    "rounding": AttributeRule(Kind.TEXT, default="down", choices=("down", "up")),
}
_GRADIENT_ATTRIBUTES = {**_ATTRIBUTES, "shape": AttributeRule(Kind.SHAPE)}


def _pooled_shape(call: Call, image: Shape) -> Shape:
    """Return the shape of a pooled image, or raise a sentence."""
    call.require(len(image) == 3, f"an image has 3 axes, not shape {describe(image)}")
    kernel, padding = call.pair("kernel"), call.pair("padding")
    shown = str(kernel[0]) if kernel[0] == kernel[1] else describe(kernel)
    problem = f"the padding {describe(padding)} is more than half of the window {shown}; pad less"
    call.require(all(2 * pad <= size for pad, size in zip(padding, kernel, strict=True)), problem)
    fits = all(size <= side + 2 * pad for size, side, pad in zip(kernel, image[1:], padding, strict=True))
    problem = f"the window {shown} is larger than the image {describe(image)}; pool less often or with a smaller one"
    call.require(fits, problem)
    return image[0], _windows(call, image[1], 0), _windows(call, image[2], 1)


def _windows(call: Call, side: int, axis: int) -> int:
    """Return how many windows there are along an axis; rounded up, the last one still begins in the image."""
    kernel, stride, padding = (call.pair(name)[axis] for name in ("kernel", "stride", "padding"))
    room = side + 2 * padding - kernel
    if call.attributes["rounding"] == "down":
        return room // stride + 1
    count = -(-room // stride) + 1
    return count - 1 if (count - 1) * stride >= side + padding else count


def _infer_max_pool2d(call: Call) -> tuple[Tensor, ...]:
    x = expect.samples(call, call.inputs[0], rank=3)
    shape = _largest_shape(call, x.shape)
    y = call.output(0, shape)
    return (y, call.output(1, shape, DType.UINT8)) if len(call.node.outputs) > 1 else (y,)


def _largest_shape(call: Call, image: Shape) -> Shape:
    rows, columns = call.pair("kernel")
    problem = f"the kernel is {describe((rows, columns))}; a position in the window must fit one byte, so 16 at most"
    call.require(rows * columns <= LARGEST_WINDOW, problem)
    return _pooled_shape(call, image)


def _infer_max_grad(call: Call) -> tuple[Tensor, ...]:
    gradient = expect.samples(call, call.inputs[0], rank=3)
    index = expect.samples(call, call.inputs[1], rank=3, dtype=DType.UINT8)
    for tensor in (gradient, index):
        expect.shape(call, tensor, _largest_shape(call, call.shape()))
    return (call.output(0, call.shape()),)


def _infer_avg_pool2d(call: Call) -> tuple[Tensor, ...]:
    x = expect.samples(call, call.inputs[0], rank=3)
    return (call.output(0, _pooled_shape(call, x.shape)),)


def _infer_avg_grad(call: Call) -> tuple[Tensor, ...]:
    gradient = expect.samples(call, call.inputs[0], rank=3)
    expect.shape(call, gradient, _pooled_shape(call, call.shape()))
    return (call.output(0, call.shape()),)


def _infer_global(call: Call) -> tuple[Tensor, ...]:
    x = expect.samples(call, call.inputs[0], rank=3)
    return (call.output(0, x.shape[:1]),)


def _infer_global_grad(call: Call) -> tuple[Tensor, ...]:
    gradient = expect.samples(call, call.inputs[0], rank=1)
    call.require(len(call.shape()) == 3, f"an image has 3 axes, not shape {describe(call.shape())}")
    expect.shape(call, gradient, call.shape()[:1])
    return (call.output(0, call.shape()),)


def _position_bytes(call: Call, pooled: Tensor) -> int:
    """Return one byte per window of a tile of images, while positions are compared."""
    if pooled.order is not Order.SAMPLES:
        return _rows_bytes(call, pooled)
    return pooled.elements * images_per_tile(call.micro_batch, pooled.elements, BYTE_TILE_ELEMENTS)


def _rows_bytes(call: Call, pooled: Tensor) -> int:
    """Return the bytes of some rows of windows: a truth value and a position each, or a truth value and a gradient."""
    rows, columns = pooled.shape[1:]
    image = call.inputs[0].shape if call.node.op == "max_pool2d" else call.shape()
    geometry = (call.pair("kernel"), call.pair("stride"), call.pair("padding"))
    taps = find_taps((image[1], image[2]), (rows, columns), *geometry)
    part = largest_part(taps, rows, pooled_rows(rows, call.samples(pooled)))
    return part * pooled.shape[0] * call.micro_batch * (2 if call.node.op == "max_pool2d" else 5)


def _window_flops(call: Call, pooled: Tensor) -> int:
    rows, columns = call.pair("kernel")
    return call.samples(pooled) * rows * columns


def _grad_max(ask: Backward) -> Node:
    inputs = (ask.gradient, ask.node.outputs[1])
    return ask.call("max_pool2d_grad", inputs, {**ask.node.attributes, "shape": ask.input(0).shape})


def _grad_avg(ask: Backward) -> Node:
    attributes = {**ask.node.attributes, "shape": ask.input(0).shape}
    return ask.call("avg_pool2d_grad", (ask.gradient,), attributes)


def _grad_global(ask: Backward) -> Node:
    return ask.call("global_avg_pool_grad", (ask.gradient,), {"shape": ask.input(0).shape})


OPERATORS = (
    Operator(
        "max_pool2d",
        _infer_max_pool2d,
        outputs=(1, 2),
        attributes=_ATTRIBUTES,
        flops=lambda call: _window_flops(call, call.outputs[0]),
        scratch_bytes=lambda call: _position_bytes(call, call.outputs[0]) if len(call.outputs) > 1 else 0,
        backward=(_grad_max,),
        saved="index",
        check_orders=orders.images_alike,
    ),
    Operator(
        "max_pool2d_grad",
        _infer_max_grad,
        inputs=(2, 2),
        attributes=_GRADIENT_ATTRIBUTES,
        flops=lambda call: call.samples(call.inputs[0]),
        scratch_bytes=lambda call: _position_bytes(call, call.inputs[0]),
        check_orders=orders.images_alike,
    ),
    Operator(
        "avg_pool2d",
        _infer_avg_pool2d,
        attributes=_ATTRIBUTES,
        # one addition per position of a window, and the quotient
        flops=lambda call: _window_flops(call, call.outputs[0]) + call.samples(call.outputs[0]),
        backward=(_grad_avg,),
        check_orders=orders.images_alike,
    ),
    Operator(
        "avg_pool2d_grad",
        _infer_avg_grad,
        attributes=_GRADIENT_ATTRIBUTES,
        flops=lambda call: _window_flops(call, call.inputs[0]) + call.samples(call.outputs[0]),
        check_orders=orders.images_alike,
    ),
    Operator(
        "global_avg_pool",
        _infer_global,
        flops=lambda call: call.samples(call.inputs[0]) + call.samples(call.outputs[0]),
        backward=(_grad_global,),
        check_orders=orders.images_alike,
    ),
    Operator(
        "global_avg_pool_grad",
        _infer_global_grad,
        attributes={"shape": AttributeRule(Kind.SHAPE)},
        flops=lambda call: call.samples(call.inputs[0]),
        check_orders=orders.images_alike,
    ),
)
