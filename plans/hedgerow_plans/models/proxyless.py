"""ProxylessNAS-Mobile (Cai and others), the network that TinyTL starts from."""

from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.models import inverted
from hedgerow_plans.models.inverted import Block
from hedgerow_plans.models.network import Kernel, Network, divisible

_STEM = 32
_LAST = 1280
_BLOCKS = (
    *((1, 3, 16, 1), (3, 5, 32, 2), (3, 3, 32, 1)),
    *((3, 7, 40, 2), (3, 3, 40, 1), (3, 5, 40, 1), (3, 5, 40, 1)),
    *((6, 7, 80, 2), (3, 5, 80, 1), (3, 5, 80, 1), (3, 5, 80, 1)),
    *((6, 5, 96, 1), (3, 5, 96, 1), (3, 5, 96, 1), (3, 5, 96, 1)),
    *((6, 7, 192, 2), (6, 7, 192, 1), (3, 7, 192, 1), (3, 7, 192, 1), (6, 7, 320, 1)),
)
"""Expansion, window, channels that come out and stride of each block."""


def proxylessnas_mobile(classes: int, input_shape: tuple[int, ...], width: float = 1.0) -> Graph:
    """Return the searched sequence of inverted residual blocks with batch norms."""
    build = Network("proxylessnas-mobile")
    stem = divisible(_STEM * width)
    x = inverted.network(build, build.input(input_shape), stem, tuple(_blocks(stem, width)))
    x = inverted.layer(build, "last", x, divisible(_LAST * max(1.0, width)), Kernel(1), folded=False)
    return build.graph(build.classify_average(x, classes))


def _blocks(channels: int, width: float) -> list[Block]:
    blocks = []
    for expansion, size, outputs, stride in _BLOCKS:
        blocks.append(Block(expansion * channels, size, stride, divisible(outputs * width)))
        channels = blocks[-1].outputs
    return blocks
