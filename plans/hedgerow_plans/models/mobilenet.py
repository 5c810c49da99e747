"""MobileNetV1 (Howard and others) and MobileNetV2 (Sandler and others), without dropout."""

from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.models import inverted
from hedgerow_plans.models.inverted import Block
from hedgerow_plans.models.network import Kernel, Network, divisible, scaled

_V1_STEM = 32
_V1_LAYERS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))
"""Channels that come out and stride of each separable convolution."""

_V2_STEM = 32
_V2_STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, channels that come out, blocks, and stride of the first one."""
_V2_LAST = 1280


def mobilenetv1(classes: int, input_shape: tuple[int, ...], width: float = 1.0, bias: bool = False) -> Graph:
    """Return separable convolutions with rectifiers; MLPerf Tiny's one has biases before its norms."""
    build = Network("mobilenetv1")
    x = _unit(build, "stem", build.input(input_shape), scaled(_V1_STEM, width), Kernel(3, 2), bias=bias)
    for number, (channels, stride) in enumerate(_V1_LAYERS):
        name, inputs = f"blocks.{number}", build.shape(x)[0]
        x = _unit(build, f"{name}.depthwise", x, inputs, Kernel(3, stride, groups=inputs), bias=bias)
        x = _unit(build, f"{name}.pointwise", x, scaled(channels, width), Kernel(1), bias=bias)
    return build.graph(build.classify_average(x, classes))


def _unit(build: Network, name: str, x: str, outputs: int, kernel: Kernel, *, bias: bool) -> str:
    return build.conv_norm(name, f"{name}.bn", x, outputs, kernel, bias=bias)


def mobilenetv2(classes: int, input_shape: tuple[int, ...], width: float = 1.0) -> Graph:
    """Return inverted residual blocks; a narrower network keeps its last 1280 channels, as torchvision's does."""
    build = Network("mobilenetv2")
    stem = divisible(_V2_STEM * width)
    x = inverted.network(build, build.input(input_shape), stem, tuple(_v2_blocks(stem, width)))
    x = inverted.layer(build, "last", x, divisible(_V2_LAST * max(1.0, width)), Kernel(1), folded=False)
    return build.graph(build.classify_average(x, classes))


def _v2_blocks(channels: int, width: float) -> list[Block]:
    blocks = []
    for expansion, outputs, count, first_stride in _V2_STAGES:
        for number in range(count):
            blocks.append(Block(expansion * channels, 3, 1 if number else first_stride, divisible(outputs * width)))
            channels = divisible(outputs * width)
    return blocks
