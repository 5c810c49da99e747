"""Building blocks that several families share: convolutions without bias, norms, pooling, and their usual sequences.

Layers are named as torchvision names them where it has the network, so that published weights map to ours by name; only
the last layer is always `logits`, because it is the one that a task replaces.
"""

from dataclasses import dataclass

from hedgerow_plans.graph.builder import RELU_GAIN, Builder, fan_in_init
from hedgerow_plans.graph.ir import Attribute, Init

Size = int | tuple[int, int]
"""Height and width, or one number for both."""


def pair(size: Size) -> tuple[int, int]:
    """Return height and width."""
    return size if isinstance(size, tuple) else (size, size)


def scaled(channels: int, width: float) -> int:
    """Return a share of some channels, at least one."""
    return max(1, round(channels * width))


def divisible(channels: float, divisor: int = 8) -> int:
    """Round a scaled width to a multiple of the divisor, never down by more than a tenth (as MobileNet does)."""
    rounded = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * channels else rounded


@dataclass(frozen=True, slots=True)
class Kernel:
    """The window of a convolution; without padding given, an odd window at stride 1 keeps the size of the image."""

    size: Size = 3
    stride: int = 1
    padding: Size | None = None
    groups: int = 1

    def attributes(self) -> dict[str, Attribute]:
        """Return the node's attributes; equal sides are written as one number."""
        height, width = pair(self.size)
        down, across = (height // 2, width // 2) if self.padding is None else pair(self.padding)
        padding = down if down == across else (down, across)
        return {"stride": self.stride, "padding": padding, "groups": self.groups}


class Network(Builder):
    """A builder that knows the usual layers of networks for images."""

    def conv(self, name: str, x: str, outputs: int, kernel: Kernel, *, bias: bool = False) -> str:
        """Add a convolution with any window."""
        shape = (outputs, self.shape(x)[0] // kernel.groups, *pair(kernel.size))
        weight = self.parameter(f"{name}.weight", shape, fan_in_init(shape, RELU_GAIN))
        more = (self.parameter(f"{name}.bias", shape[:1], Init("zeros")),) if bias else ()
        return self.node(name, "conv2d", (x, weight, *more), **kernel.attributes())

    def conv_norm(
        self,
        name: str,
        norm: str,
        x: str,
        outputs: int,
        kernel: Kernel,
        *,
        activation: str = "relu",
        bias: bool = False,
    ) -> str:
        """Add a convolution, the batch norm called `norm`, and an activation unless that is empty."""
        y = self.batch_norm(norm, self.conv(name, x, outputs, kernel, bias=bias))
        return self.activation(f"{norm}.{activation}", y, activation) if activation else y

    def dense(self, name: str, x: str, outputs: int) -> str:
        """Add a fully connected layer with a bias and a rectifier."""
        return self.relu(f"{name}.relu", self.linear(name, x, outputs))

    def classify(self, x: str, classes: int) -> str:
        """Add the last layer on flat features."""
        return self.linear("logits", self.flatten("flat", x), classes, gain=1.0)

    def classify_average(self, x: str, classes: int) -> str:
        """Add the last layer on the mean of each channel."""
        return self.classify(self.global_avg_pool("avgpool", x), classes)
