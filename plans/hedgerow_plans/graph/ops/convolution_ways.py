"""Ways to compute a convolution and its gradients: the orders they work in, and the scratch they need.

Unfolding works everywhere: a tile of patches becomes a matrix (im2col). For images by pixels there are more: one matrix
product for each position of the window where it meets the image (taps, for images so small that much of a window hangs
over the edge), Winograd's F(2x2, 3x3), which multiplies 2.25 times less, and products of channels with themselves
(depthwise). A kernel cuts its scratch the way it is added up here.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

from hedgerow_plans.graph.ir import Order, Tensor
from hedgerow_plans.graph.operator import Call, Shape
from hedgerow_plans.graph.ops.orders import lies_as, same_order
from hedgerow_plans.graph.tiles import ROWS_TILE_ELEMENTS, SMALL_WEIGHT_ELEMENTS, UNFOLDED_TILE_ELEMENTS
from hedgerow_plans.graph.windows import Tap, find_taps

_LEAST_ROW = 8
"""Pixels of all samples in a row, to an output: gradients of rows then take at most an eighth of
the room of patches."""

Pair = tuple[int, int]

PLANE_GAP_ELEMENTS = 16
"""What keeps Winograd's sixteen planes from lying multiples of a page apart, where they would share cache lines."""


class Way(StrEnum):
    """How a convolution is computed; the attribute `algorithm`."""

    UNFOLD = "unfold"
    TAPS = "taps"
    WINOGRAD = "winograd"
    DEPTHWISE = "depthwise"


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a convolution at a micro-batch, whichever of its tensors is being computed."""

    samples: int
    channels: int
    outputs: int
    window: int  # positions of a patch, all channels of a group
    image: tuple[int, int]
    result: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]

    @property
    def taps(self) -> tuple[Tap, ...]:
        """Positions of the window that meet the image."""
        return find_taps(self.image, self.result, self.kernel, self.stride, self.padding)

    @property
    def pointwise(self) -> bool:
        """Whether each pixel becomes one pixel, so that images are multiplied as they are."""
        return self.kernel == self.stride == (1, 1) and self.padding == (0, 0)

    @property
    def pixels(self) -> int:
        """Pixels of the result, all samples."""
        return math.prod(self.result) * self.samples

    @property
    def unfolded_rows(self) -> int:
        """Rows of the result whose patches are unfolded at once: as few tiles as may be, of one size."""
        most = _rows(UNFOLDED_TILE_ELEMENTS, self.window * self.result[1] * self.samples, self.result[0])
        tiles = -(-self.result[0] // most)
        return -(-self.result[0] // tiles)

    @property
    def stacked_rows(self) -> int:
        """Rows of a tile that each get a gradient of a small weight of their own; 0 if that is not worth it."""
        small = self.window * self.outputs <= SMALL_WEIGHT_ELEMENTS
        long = self.result[1] * self.samples >= _LEAST_ROW * self.outputs
        return self.unfolded_rows if small and long else 0

    @property
    def unfolded_elements(self) -> int:
        """Elements of a tile of patches."""
        return self.unfolded_rows * self.result[1] * self.samples * self.window

    @property
    def depthwise_rows(self) -> int:
        """Rows of the result that are computed at once, channel by channel."""
        return _rows(ROWS_TILE_ELEMENTS, self.result[1] * self.samples * self.channels, self.result[0])

    @property
    def depthwise_elements(self) -> int:
        """Elements of such rows, and of the window's numbers for every sample."""
        return (self.depthwise_rows * self.result[1] + self.window) * self.samples * self.channels

    @property
    def tiles(self) -> int:
        """Winograd's tiles of 2x2 pixels, all samples."""
        return self.pixels // 4

    @property
    def padded_elements(self) -> int:
        """Elements of the images with a border of zeros."""
        return (self.image[0] + 2) * (self.image[1] + 2) * self.samples * self.channels

    @property
    def half_transformed_elements(self) -> int:
        """Elements of Winograd's transform along rows alone."""
        return 2 * self.image[0] * (self.image[1] + 2) * self.samples * self.channels


def planes_elements(tiles: int, channels: int) -> int:
    """Return the elements of sixteen planes with their gaps."""
    return 16 * (tiles * channels + PLANE_GAP_ELEMENTS)


def _rows(tile_elements: int, row_elements: int, rows: int) -> int:
    return max(1, min(rows, tile_elements // row_elements))


def sizes_of(samples: int, shapes: tuple[Shape, Shape, Shape], stride: Pair, padding: Pair) -> Sizes:
    """Return the sizes of a convolution from the shapes of an image, the weight and the result."""
    image, weight, result = shapes
    return Sizes(
        samples,
        image[0],
        result[0],
        math.prod(weight[1:]),
        (image[1], image[2]),
        (result[1], result[2]),
        (weight[2], weight[3]),
        stride,
        padding,
    )


def is_apart(sizes: Sizes, tap: Tap, *, in_image: bool) -> bool:
    """Tell whether the pixels of a tap are no matrix as they lie, and must be copied to be multiplied."""
    if in_image:
        return sizes.stride != (1, 1) or tap.columns != sizes.image[1]
    return tap.columns != sizes.result[1]


def meets_all(sizes: Sizes, tap: Tap, *, in_image: bool) -> bool:
    """Tell whether a tap reaches every pixel of the images, or of the result."""
    high, wide = sizes.image if in_image else sizes.result
    return (tap.rows, tap.columns) == (high, wide)


def copied_pixels(sizes: Sizes, *, in_image: bool) -> int:
    """Return the pixels of all samples for which taps need room to be copied to."""
    apart = (tap for tap in sizes.taps if is_apart(sizes, tap, in_image=in_image))
    return sizes.samples * max((tap.rows * tap.columns for tap in apart), default=0)


def added_pixels(sizes: Sizes, *, in_image: bool) -> int:
    """Return the pixels of all samples for which taps need room for products; one that meets all may write its own."""
    counts = sorted((not meets_all(sizes, tap, in_image=in_image), tap.rows * tap.columns) for tap in sizes.taps)
    whole_first = counts[1:] if counts and not counts[0][0] else counts
    return sizes.samples * max((pixels for _, pixels in whole_first), default=0)


def check_orders(call: Call, image: Tensor, weight: Tensor, result: Tensor) -> None:
    """Raise a sentence unless the way can be gone with tensors that lie as they do."""
    way = Way(str(call.attributes["algorithm"]))
    if way is Way.UNFOLD and image.order is Order.CHANNELS:
        lies_as(call, result, Order.CHANNELS, Order.PIXELS)
    else:
        same_order(call, image, result)
    if way is not Way.UNFOLD:
        lies_as(call, image, Order.PIXELS)
    lies_as(call, weight, _weight_order(way, image, weight))
    if image.order is not Order.SAMPLES:
        _check_groups(call, way, image, weight)
    if way is Way.WINOGRAD:
        _check_winograd(call, image, weight)


def _weight_order(way: Way, image: Tensor, weight: Tensor) -> Order:
    by_taps = image.order is Order.PIXELS and way is not Way.DEPTHWISE and weight.shape[2:] != (1, 1)
    return Order.TAPS if by_taps else Order.SAMPLES


def _check_groups(call: Call, way: Way, image: Tensor, weight: Tensor) -> None:
    wanted = image.shape[0] if way is Way.DEPTHWISE else 1
    fits = call.integer("groups") == wanted and (way is not Way.DEPTHWISE or weight.shape[0] == wanted)
    call.require(fits, f"{way.value} by {image.order.value} needs {wanted} groups of {wanted} outputs or fewer")


def _check_winograd(call: Call, image: Tensor, weight: Tensor) -> None:
    known = weight.shape[2:] == (3, 3) and call.pair("stride") == (1, 1) and call.pair("padding") == (1, 1)
    even = all(side % 2 == 0 for side in image.shape[1:])
    call.require(known and even, "Winograd's way needs a 3x3 window, stride 1, padding 1 and even images")


def forward_elements(way: Way, sizes: Sizes) -> int:
    """Return the floats of scratch of a convolution."""
    if sizes.pointwise and way is not Way.DEPTHWISE:
        return 0
    match way:
        case Way.UNFOLD:
            return sizes.unfolded_elements
        case Way.TAPS:
            copied, added = copied_pixels(sizes, in_image=True), added_pixels(sizes, in_image=False)
            return copied * sizes.channels + added * sizes.outputs
        case Way.DEPTHWISE:
            return sizes.depthwise_elements
        case Way.WINOGRAD:
            before = sizes.padded_elements + sizes.half_transformed_elements
            return _winograd_elements(sizes, before, _products_elements(sizes))


def grad_input_elements(way: Way, sizes: Sizes) -> int:
    """Return the floats of scratch of a gradient of the images."""
    if sizes.pointwise and way is not Way.DEPTHWISE:
        return 0
    if way is Way.WINOGRAD:
        after = planes_elements(sizes.tiles, sizes.channels) + sizes.padded_elements
        return _winograd_elements(sizes, _products_elements(sizes), after)
    if way is Way.TAPS:
        copied, added = copied_pixels(sizes, in_image=False), added_pixels(sizes, in_image=True)
        return copied * sizes.outputs + added * sizes.channels
    return forward_elements(way, sizes)


def grad_weight_elements(way: Way, sizes: Sizes, *, by_channels: bool = False) -> int:
    """Return the floats of scratch of a gradient of the weight, for images by channels or by pixels."""
    if sizes.pointwise and way is not Way.DEPTHWISE:
        return 0
    match way:
        case Way.UNFOLD:
            in_tiles, each = sizes.unfolded_rows < sizes.result[0], sizes.window * sizes.outputs
            beside = in_tiles + (1 + sizes.stacked_rows if by_channels else 0)
            return sizes.unfolded_elements + beside * each
        case Way.TAPS:
            near, far = copied_pixels(sizes, in_image=True), copied_pixels(sizes, in_image=False)
            return near * sizes.channels + far * sizes.outputs
        case Way.DEPTHWISE:
            return sizes.depthwise_elements + sizes.depthwise_rows * sizes.result[1] + sizes.samples * sizes.channels
        case _:
            return forward_elements(way, sizes)


def sgd_elements(way: Way, sizes: Sizes) -> int:
    """Return the floats of scratch of a gradient that goes straight into the weight, which adds tiles up itself."""
    if way is Way.UNFOLD and not sizes.pointwise:
        return sizes.unfolded_elements
    return grad_weight_elements(way, sizes)


def _products_elements(sizes: Sizes) -> int:
    return planes_elements(sizes.tiles, sizes.outputs) + 4 * sizes.tiles * sizes.outputs


def _winograd_elements(sizes: Sizes, first: int, second: int) -> int:
    """Return the transformed weight and images, and room that is used twice."""
    weight = 16 * sizes.channels * sizes.outputs
    return weight + planes_elements(sizes.tiles, sizes.channels) + max(first, second)
