"""MLPerf Tiny's residual network for CIFAR-10 and its separable network for spoken words, as its reference has them.

Convolutions have biases before their norms, as in Keras. Where the reference pads one side more than the other, ours
pads both sides alike to the same size of image. Dropout is left out.
"""

from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.models.network import Kernel, Network, scaled

_RESNET8_CHANNELS = (16, 32, 64)
_DS_CNN_CHANNELS = 64
_DS_CNN_BLOCKS = 4


def resnet8(classes: int, input_shape: tuple[int, ...], width: float = 1.0) -> Graph:
    """Return three residual blocks; the shortcut of a block that halves the image is a convolution without norm."""
    build = Network("resnet8")
    channels = [scaled(count, width) for count in _RESNET8_CHANNELS]
    x = build.conv_norm("conv", "bn", build.input(input_shape), channels[0], Kernel(3), bias=True)
    for number, outputs in enumerate(channels, start=1):
        x = _residual(build, f"stack{number}", x, outputs, 1 if number == 1 else 2)
    return build.graph(build.classify_average(x, classes))


def _residual(build: Network, name: str, x: str, channels: int, stride: int) -> str:
    inner = build.conv_norm(f"{name}.conv1", f"{name}.bn1", x, channels, Kernel(3, stride), bias=True)
    inner = build.conv_norm(f"{name}.conv2", f"{name}.bn2", inner, channels, Kernel(3), activation="", bias=True)
    if stride > 1:
        x = build.conv(f"{name}.shortcut", x, channels, Kernel(1, stride), bias=True)
    return build.relu(f"{name}.relu", build.add(f"{name}.sum", inner, x))


def ds_cnn(classes: int, input_shape: tuple[int, ...], width: float = 1.0) -> Graph:
    """Return a 10x4 convolution and four separable ones over 49 frames of 10 cepstral coefficients."""
    build = Network("ds-cnn")
    channels = scaled(_DS_CNN_CHANNELS, width)
    first = Kernel((10, 4), 2, padding=(5, 1))
    x = build.conv_norm("conv", "bn", build.input(input_shape), channels, first, bias=True)
    for number in range(_DS_CNN_BLOCKS):
        name = f"blocks.{number}"
        depthwise = Kernel(3, groups=channels)
        x = build.conv_norm(f"{name}.depthwise", f"{name}.depthwise.bn", x, channels, depthwise, bias=True)
        x = build.conv_norm(f"{name}.pointwise", f"{name}.pointwise.bn", x, channels, Kernel(1), bias=True)
    return build.graph(build.classify_average(x, classes))
