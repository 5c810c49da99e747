"""Convolutions of images by pixels or by channels; the way a plan names is followed where it matters.

`by_samples` has those of images as their shapes say.
"""

from collections.abc import Callable
from dataclasses import dataclass

from hedgerow_agent.core.kernels.call import Array, Call
from hedgerow_agent.core.native.draft import Block, Draft, Drafts, Encoder, Room
from hedgerow_agent.core.native.encoders import by_samples
from hedgerow_agent.core.native.encoders.dense import Shape, product, products, strands_of, take_product
from hedgerow_agent.core.native.encoders.elementwise import add_repeated
from hedgerow_agent.core.native.encoders.layout import copy
from hedgerow_agent.core.native.encoders.pooling import window_sizes
from hedgerow_plans.graph.ir import Order
from hedgerow_plans.graph.ops.convolution_ways import PLANE_GAP_ELEMENTS, Way

_MOST_POSITIONS = 121


@dataclass(frozen=True, slots=True)
class _Layer:
    """A convolution, whichever of its tensors is being computed."""

    call: Call
    image: Array
    weight: Array
    result: Array
    image_order: Order
    weight_order: Order
    result_order: Order
    room: Room

    @property
    def window(self) -> tuple[int, ...]:
        return window_sizes(self.call, self.image, self.result, (self.weight.shape[2], self.weight.shape[3]))

    @property
    def way(self) -> Way:
        return Way(str(self.call.node.attributes.get("algorithm", Way.UNFOLD.value)))

    @property
    def samples(self) -> int:
        return len(self.image)

    @property
    def channels(self) -> int:
        return int(self.image.shape[1])

    @property
    def outputs(self) -> int:
        return int(self.result.shape[1])

    @property
    def pointwise(self) -> bool:
        plain = self.call.pair("stride", 1) == (1, 1) and self.call.pair("padding", 0) == (0, 0)
        return self.weight.shape[2:] == (1, 1) and plain

    @property
    def pixels(self) -> int:
        return self.result.size // self.outputs

    @property
    def by_taps(self) -> bool:
        return self.weight_order is Order.TAPS

    @property
    def work(self) -> int:
        return self.pixels * self.weight.size // 8

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.samples, self.channels, self.outputs, *self.window, int(self.by_taps))

    def ring(self) -> Array | None:
        """Return all scratch that is left, for rows that are copied near; None if there is none."""
        return self.room.take(self.room.left) if self.room.left else None

    def draft(self, op: str, operands: tuple[Array | None, ...], units: int, grain: int = 1) -> Draft:
        return Draft(op, operands, self.sizes, units, self.work, grain=grain)


def _layer(call: Call, which: tuple[str, str, str]) -> _Layer | None:
    """Look at a convolution; `which` names the places of image, weight and result: two inputs, and what is made."""
    tensors = zip((*call.inputs[:2], *call.outputs, *call.updates), _orders(call), strict=True)
    places = dict(zip(("first", "second", "made"), tensors, strict=True))
    (image, image_order), (weight, weight_order), (result, result_order) = (places[name] for name in which)
    if weight.shape[2] * weight.shape[3] > _MOST_POSITIONS:
        return None
    return _Layer(call, image, weight, result, image_order, weight_order, result_order, Room(call))


def _orders(call: Call) -> tuple[Order, ...]:
    return (*call.input_orders[:2], *call.output_orders, *call.update_orders)


def _forward(call: Call, _block: Block) -> Drafts | None:
    layer = _layer(call, ("first", "second", "made"))
    if layer is None:
        return None
    bias = call.inputs[2] if len(call.inputs) > 2 else None
    if layer.image_order is Order.CHANNELS:
        return _forward_by_channels(layer, bias)
    if layer.way is Way.DEPTHWISE:
        return _depthwise_forward(layer, bias)
    if layer.pointwise:
        shape = Shape(layer.pixels, layer.outputs, layer.channels, turn_b=True)
        return (product(layer.image, layer.weight, layer.result, shape, bias),)
    if layer.way is Way.WINOGRAD and bias is None:
        return _winograd_forward(layer)
    operands = (layer.image, layer.weight, layer.result, bias)
    return (layer.draft("conv_forward", operands, layer.outputs, grain=16),)


def _forward_by_channels(layer: _Layer, bias: Array | None) -> Drafts | None:
    rows = layer.result.shape[2]
    if layer.result_order is Order.CHANNELS:
        operands = (layer.image, layer.weight, layer.result, bias, layer.ring())
        return (layer.draft("channels_forward", operands, rows),)
    if layer.pointwise:
        shape = Shape(layer.pixels, layer.outputs, layer.channels, turn_a=True, turn_b=True)
        return (product(layer.image, layer.weight, layer.result, shape, bias),)
    if layer.room.left < layer.weight.size:
        return None
    lines = layer.weight.size // layer.outputs
    turned = layer.room.take(layer.weight.size)
    turn = copy(layer.weight.reshape(layer.outputs, lines).T, turned.reshape(lines, layer.outputs))
    return (
        None if turn is None else (turn, layer.draft("entry_forward", (layer.image, turned, layer.result, bias), rows))
    )


def _grad_input(call: Call, _block: Block) -> Drafts | None:
    layer = _layer(call, ("made", "second", "first"))
    if layer is None:
        return None
    if layer.image_order is Order.CHANNELS:
        return _grad_input_by_channels(layer)
    if layer.way is Way.DEPTHWISE:
        return _depthwise_grad_input(layer)
    operands = (layer.result, layer.weight, layer.image)
    if layer.pointwise:
        return (product(*operands, Shape(layer.pixels, layer.channels, layer.outputs)),)
    if layer.way is Way.WINOGRAD:
        return _winograd_grad_input(layer)
    return (layer.draft("conv_grad_input", operands, layer.channels, grain=16),)


def _grad_input_by_channels(layer: _Layer) -> Drafts | None:
    if layer.result_order is not Order.CHANNELS:
        return None
    operands = (layer.result, layer.weight, layer.image, None, layer.ring())
    return (layer.draft("channels_grad_input", operands, layer.image.shape[2]),)


def _grad_weight(call: Call, _block: Block) -> Drafts | None:
    layer = _layer(call, ("second", "made", "first"))
    if layer is None:
        return None
    if layer.image_order is Order.CHANNELS:
        return _grad_weight_by_channels(layer)
    if layer.way is Way.DEPTHWISE:
        return _depthwise_grad_weight(layer)
    return _into_weight(layer)


def _sgd(call: Call, block: Block) -> Drafts | None:
    """Take the gradient of a weight, times the rate, from the weight: only images by pixels have it."""
    layer = _layer(call, ("second", "made", "first"))
    return None if layer is None else _into_weight(layer, block.rate)


def _into_weight(layer: _Layer, rate: Array | None = None) -> Drafts:
    """Write the gradient of a weight by pixels or, with a rate, take it from the weight."""
    operands = (layer.result, layer.image, layer.weight)
    if layer.pointwise:
        shape = Shape(layer.outputs, layer.channels, layer.pixels, turn_a=True)
        return (product(*operands, shape) if rate is None else take_product(*operands, shape, rate),)
    if layer.way is Way.WINOGRAD:
        return _winograd_into_weight(layer, rate)
    return (layer.draft("conv_grad_weight", (*operands, rate), layer.outputs, grain=16),)


def _grad_weight_by_channels(layer: _Layer) -> Drafts | None:
    if layer.result_order is Order.CHANNELS:
        operands = (layer.result, layer.image, layer.weight, None, layer.ring())
        return (layer.draft("channels_grad_weight", operands, layer.outputs, grain=4),)
    if layer.pointwise:
        shape = Shape(layer.outputs, layer.channels, layer.pixels, turn_a=True, turn_b=True)
        return (product(layer.result, layer.image, layer.weight, shape),)
    if layer.room.left < layer.weight.size:
        return None
    lines = layer.weight.size // layer.outputs
    turned = layer.room.take(layer.weight.size)
    turn = copy(turned.reshape(lines, layer.outputs).T, layer.weight.reshape(layer.outputs, lines))
    first = layer.draft("entry_grad_weight", (layer.result, layer.image, turned), lines, grain=6)
    return None if turn is None else (first, turn)


def _numbers(layer: _Layer) -> tuple[Array, Draft] | None:
    """Return room for a depthwise window turned (position, channel), and the copy that fills it."""
    positions = layer.weight.shape[2] * layer.weight.shape[3]
    if layer.room.left < layer.weight.size:
        return None
    numbers = layer.room.take(layer.weight.size)
    turn = copy(layer.weight.reshape(layer.channels, positions).T, numbers.reshape(positions, layer.channels))
    return None if turn is None else (numbers, turn)


def _depthwise(layer: _Layer, op: str, operands: tuple[Array, ...], units: int, *more: int) -> Draft:
    sizes = (layer.samples, layer.channels, *layer.window, *more)
    positions = layer.weight.shape[2] * layer.weight.shape[3]
    return Draft(op, operands, sizes, units, layer.result.size * positions // 2)


def _depthwise_forward(layer: _Layer, bias: Array | None) -> Drafts | None:
    turned = _numbers(layer)
    if turned is None:
        return None
    numbers, turn = turned
    operands = (layer.image, numbers, layer.result)
    forward = _depthwise(layer, "depthwise_forward", operands, layer.result.shape[2])
    return (turn, forward) if bias is None else (turn, forward, add_repeated(layer.result, bias, layer.result))


def _depthwise_grad_input(layer: _Layer) -> Drafts | None:
    turned = _numbers(layer)
    if turned is None:
        return None
    numbers, turn = turned
    operands = (layer.result, numbers, layer.image)
    return turn, _depthwise(layer, "depthwise_grad_input", operands, layer.image.shape[2])


def _depthwise_grad_weight(layer: _Layer) -> Drafts | None:
    strands = strands_of(layer.result.shape[2], layer.room.left, layer.weight.size)
    if not strands:
        return None
    partial = layer.room.take(strands * layer.weight.size)
    positions = layer.weight.shape[2] * layer.weight.shape[3]
    sizes = (positions, layer.channels, strands)
    return (
        _depthwise(layer, "depthwise_grad_weight", (layer.result, layer.image, partial), strands, strands),
        Draft("join_turned", (partial, layer.weight), sizes, layer.channels, partial.size, grain=16),
    )


@dataclass(frozen=True, slots=True)
class _Planes:
    """Sixteen planes in scratch, and how images become them."""

    floats: Array
    step: int
    height: int
    width: int
    pixel: int

    def draft(self, op: str, operands: tuple[Array, ...]) -> Draft:
        sizes = (self.height, self.width, self.pixel, self.step)
        return Draft(op, operands, sizes, self.height * self.width // 4, 2 * self.floats.size)


def _planes(layer: _Layer, channels: int) -> _Planes:
    height, width = layer.image.shape[2:]
    pixel = layer.samples * channels
    step = height * width // 4 * pixel + PLANE_GAP_ELEMENTS
    return _Planes(layer.room.take(16 * step), step, height, width, pixel)


def _transformed_weight(layer: _Layer) -> Array:
    return layer.room.take(16 * layer.channels * layer.outputs)


def _weight_draft(op: str, elements: int, *operands: Array | None) -> Draft:
    return Draft(op, operands, (elements,), elements, 25 * elements, grain=16)


def _winograd_forward(layer: _Layer) -> Drafts:
    weights, tiles = _transformed_weight(layer), layer.pixels // 4
    images, made = _planes(layer, layer.channels), _planes(layer, layer.outputs)
    each = layer.channels * layer.outputs
    shape = Shape(tiles, layer.outputs, layer.channels)
    return (
        _weight_draft("wino_weight", each, layer.weight, weights),
        images.draft("wino_image", (layer.image, images.floats)),
        products(images.floats, weights, made.floats, shape, (16, images.step, each, made.step)),
        made.draft("wino_result", (made.floats, layer.result)),
    )


def _winograd_grad_input(layer: _Layer) -> Drafts:
    weights, tiles = _transformed_weight(layer), layer.pixels // 4
    images, given = _planes(layer, layer.channels), _planes(layer, layer.outputs)
    each = layer.channels * layer.outputs
    shape = Shape(tiles, layer.channels, layer.outputs, turn_b=True)
    return (
        _weight_draft("wino_weight", each, layer.weight, weights),
        given.draft("wino_gradient", (layer.result, given.floats)),
        products(given.floats, weights, images.floats, shape, (16, given.step, each, images.step)),
        images.draft("wino_back", (images.floats, layer.image)),
    )


def _winograd_into_weight(layer: _Layer, rate: Array | None) -> Drafts:
    weights, tiles = _transformed_weight(layer), layer.pixels // 4
    images, given = _planes(layer, layer.channels), _planes(layer, layer.outputs)
    each = layer.channels * layer.outputs
    shape = Shape(layer.channels, layer.outputs, tiles, turn_a=True)
    return (
        images.draft("wino_image", (layer.image, images.floats)),
        given.draft("wino_gradient", (layer.result, given.floats)),
        products(images.floats, given.floats, weights, shape, (16, images.step, given.step, each)),
        _weight_draft("wino_weight_back", each, weights, layer.weight, rate),
    )


def _by_order(plain: Callable[[Call], Drafts | None], other: Encoder) -> Encoder:
    return lambda call, block: plain(call) if call.order is Order.SAMPLES else other(call, block)


ENCODERS = {
    "conv2d": _by_order(by_samples.forward, _forward),
    "conv2d_grad_input": _by_order(by_samples.grad_input, _grad_input),
    "conv2d_grad_weight": _by_order(by_samples.grad_weight, _grad_weight),
    "sgd_conv2d": _sgd,
}
