"""Which way a convolution is computed: by its shapes, and by the scratch that may be spent."""

from dataclasses import dataclass

from hedgerow_plans.graph.ir import Node, Order, Tensor
from hedgerow_plans.graph.operator import Tensors, as_pair
from hedgerow_plans.graph.ops.convolution_ways import (
    Sizes,
    Way,
    forward_elements,
    grad_input_elements,
    grad_weight_elements,
    sizes_of,
)

OPERATORS = ("conv2d", "conv2d_grad_input", "conv2d_grad_weight")

_ELEMENTS = dict(zip(OPERATORS, (forward_elements, grad_input_elements, grad_weight_elements), strict=True))

_MOST_TAP_PIXELS = 16
"""Largest result, 4x4, for which one product for each position of the window beats unfolding."""

_FEWEST_WINOGRAD_PIXELS = 64
"""Smallest image, 8x8, for which Winograd's transforms pay."""

_FEWEST_WINOGRAD_CHANNELS = 32
"""With fewer, the products are so thin that the transforms cost more than they save."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A convolution or one of its gradients: the names of its tensors, and their shapes."""

    image: str
    weight: str
    result: str
    sizes: Sizes
    groups: int

    @property
    def depthwise(self) -> bool:
        """Whether each channel is convolved with itself."""
        return self.groups == self.sizes.channels == self.sizes.outputs

    @property
    def for_winograd(self) -> bool:
        """Whether Winograd's F(2x2, 3x3) applies and promises something."""
        sizes = self.sizes
        applies = (sizes.kernel, sizes.stride, sizes.padding) == ((3, 3), (1, 1), (1, 1))
        even = sizes.image[0] % 2 == sizes.image[1] % 2 == 0
        large = sizes.image[0] * sizes.image[1] >= _FEWEST_WINOGRAD_PIXELS
        return applies and even and large and min(sizes.channels, sizes.outputs) >= _FEWEST_WINOGRAD_CHANNELS


def layer_of(node: Node, tensors: Tensors, samples: int) -> Layer:
    """Look at a convolution, whichever of its tensors it makes."""
    first, second, made = node.inputs[0], node.inputs[1], node.outputs[0]
    image, weight, result = {
        "conv2d": (first, second, made),
        "conv2d_grad_input": (made, second, first),
        "conv2d_grad_weight": (second, made, first),
    }[node.op]
    shapes = (tensors[image].shape, tensors[weight].shape, tensors[result].shape)
    groups = node.attributes.get("groups", 1)
    return Layer(
        image,
        weight,
        result,
        sizes_of(samples, shapes, _pair(node, "stride", 1), _pair(node, "padding", 0)),
        groups if isinstance(groups, int) else 1,
    )


def _pair(node: Node, name: str, default: int) -> tuple[int, int]:
    value = node.attributes.get(name, default)
    return as_pair(value if isinstance(value, tuple) else int(value))


def way_by_pixels(node: Node, layer: Layer, scratch_bytes: int) -> Way:
    """Return the way for images by pixels."""
    if layer.depthwise:
        return Way.DEPTHWISE
    if layer.sizes.pointwise:
        return Way.UNFOLD
    if layer.for_winograd and 4 * _ELEMENTS[node.op](Way.WINOGRAD, layer.sizes) <= scratch_bytes:
        return Way.WINOGRAD
    few = layer.sizes.result[0] * layer.sizes.result[1] <= _MOST_TAP_PIXELS
    return Way.TAPS if few or layer.sizes.kernel == (1, 1) else Way.UNFOLD


def weight_order(way: Way, image: Order, weight: Tensor) -> Order:
    """Return the order in which a way reads or writes the weight."""
    by_taps = image is Order.PIXELS and way is not Way.DEPTHWISE and weight.shape[2:] != (1, 1)
    return Order.TAPS if by_taps else Order.SAMPLES
