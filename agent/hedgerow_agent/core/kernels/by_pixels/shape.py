"""A convolution of images by pixels or by channels: its views as they lie, its sizes and its taps."""

from dataclasses import dataclass

from hedgerow_agent.core.kernels.call import Array, Call, stored
from hedgerow_plans.graph.ir import Order
from hedgerow_plans.graph.ops.convolution_ways import Sizes, Way, sizes_of
from hedgerow_plans.graph.windows import Tap


@dataclass(frozen=True, slots=True)
class Layer:
    """One convolution, whichever of its three tensors is being computed."""

    image: Array  # as it lies
    weight: Array  # (outputs, channels of a group, kernel rows, kernel columns)
    result: Array  # as it lies
    image_order: Order
    result_order: Order
    sizes: Sizes
    taps: tuple[Tap, ...]
    way: Way
    bias: Array | None = None

    @property
    def pointwise(self) -> bool:
        """Whether each pixel becomes one pixel of all channels."""
        return self.sizes.pointwise and self.way is not Way.DEPTHWISE

    @property
    def unfolds(self) -> bool:
        """Whether patches are unfolded; the bias is then added tile by tile."""
        return self.way is Way.UNFOLD and not self.pointwise

    @property
    def window(self) -> Array:
        """The weight as one matrix (channels, outputs) for each position: contiguous if it lies by taps."""
        return self.weight.transpose(2, 3, 1, 0)


def layer_of(
    call: Call, image: tuple[Array, Order], weight: Array, result: tuple[Array, Order], bias: Array | None = None
) -> Layer:
    """Look at a convolution."""
    (x, x_order), (y, y_order) = image, result
    sizes = sizes_of(len(x), (x.shape[1:], weight.shape, y.shape[1:]), call.pair("stride", 1), call.pair("padding", 0))
    return Layer(
        stored(x, x_order),
        weight,
        stored(y, y_order),
        x_order,
        y_order,
        sizes,
        sizes.taps,
        Way(str(call.node.attributes.get("algorithm", Way.UNFOLD.value))),
        bias,
    )
