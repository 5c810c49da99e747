"""The three networks of TTE ("On-Device Training Under 256KB Memory") as they are deployed at 128x128.

Norms are folded into biases, because TTE trains the quantised network; so the last k biases of its sparse update are
biases of convolutions here. There is no wide last convolution: the classifier reads the last block's channels averaged.
"""

from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.models import inverted
from hedgerow_plans.models.inverted import Block
from hedgerow_plans.models.network import Network

_STEM = 16

_MOBILENETV2 = (
    *((16, 3, 1, 8), (48, 3, 2, 8), (48, 3, 1, 8), (48, 3, 2, 16)),
    *((96, 3, 1, 16), (96, 3, 1, 16), (96, 3, 2, 24), (144, 3, 1, 24)),
    *((144, 3, 1, 24), (144, 3, 1, 24), (144, 3, 1, 32), (192, 3, 1, 32)),
    *((192, 3, 1, 32), (192, 3, 2, 56), (336, 3, 1, 56), (336, 3, 1, 56)),
    *((336, 3, 1, 112),),
)
"""Channels in the middle, window, stride and channels that come out of each block."""

_PROXYLESS = (
    *((16, 3, 1, 8), (24, 5, 2, 16), (48, 3, 1, 16), (48, 7, 2, 16)),
    *((48, 3, 1, 16), (48, 5, 1, 16), (48, 5, 1, 16), (96, 7, 2, 24)),
    *((72, 5, 1, 24), (72, 5, 1, 24), (72, 5, 1, 24), (144, 5, 1, 32)),
    *((96, 5, 1, 32), (96, 5, 1, 32), (96, 5, 1, 32), (192, 7, 2, 64)),
    *((384, 7, 1, 64), (192, 7, 1, 64), (192, 7, 1, 64), (384, 7, 1, 96)),
)

_MCUNET = (
    *((16, 3, 1, 8), (32, 3, 2, 16), (48, 3, 1, 16), (48, 7, 2, 24)),
    *((120, 3, 1, 24), (120, 3, 2, 40), (160, 7, 1, 40), (160, 5, 1, 48)),
    *((144, 3, 1, 48), (192, 3, 1, 48), (240, 7, 2, 96), (384, 5, 1, 96)),
    *((384, 5, 1, 96), (576, 3, 1, 160)),
)


def mobilenetv2_035(classes: int, input_shape: tuple[int, ...]) -> Graph:
    """Return MobileNetV2 with 0.35 of its channels."""
    return _folded("mobilenetv2-0.35", _MOBILENETV2, classes, input_shape)


def proxylessnas_03(classes: int, input_shape: tuple[int, ...]) -> Graph:
    """Return ProxylessNAS-Mobile with 0.3 of its channels."""
    return _folded("proxylessnas-0.3", _PROXYLESS, classes, input_shape)


def mcunet_5fps(classes: int, input_shape: tuple[int, ...]) -> Graph:
    """Return the MCUNet that was searched for 5 images a second on a Cortex-M7."""
    return _folded("mcunet-5fps", _MCUNET, classes, input_shape)


def _folded(name: str, blocks: tuple[tuple[int, ...], ...], classes: int, input_shape: tuple[int, ...]) -> Graph:
    build = Network(name)
    x = inverted.network(build, build.input(input_shape), _STEM, tuple(Block(*block) for block in blocks), folded=True)
    return build.graph(build.classify_average(x, classes))
