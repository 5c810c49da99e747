"""SqueezeNet 1.0 (Iandola and others): fire modules that squeeze with 1x1 and expand with 1x1 and 3x3 convolutions."""

from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.models.network import Kernel, Network, scaled

_FIRES = {
    3: (16, 64),
    4: (16, 64),
    5: (32, 128),
    7: (32, 128),
    8: (48, 192),
    9: (48, 192),
    10: (64, 256),
    12: (64, 256),
}
"""Position among torchvision's layers, and channels after squeezing and of each expansion; pools lie at 2, 6 and 11."""

_POOLS = (2, 6, 11)


def squeezenet(classes: int, input_shape: tuple[int, ...], width: float = 1.0) -> Graph:
    """Return the network; its classifier is a convolution whose pixels are averaged, and it has no dropout."""
    build = Network("squeezenet")
    first = build.conv("features.0", build.input(input_shape), scaled(96, width), Kernel(7, 2, 0), bias=True)
    x = build.relu("features.1", first)
    for number in sorted((*_FIRES, *_POOLS)):
        name = f"features.{number}"
        if number in _POOLS:
            x = build.max_pool2d(name, x, 3, stride=2, rounding="up")
        else:
            squeezed, expanded = _FIRES[number]
            x = _fire(build, name, x, scaled(squeezed, width), scaled(expanded, width))
    x = build.relu("classifier.2", build.conv("classifier.1", x, classes, Kernel(1), bias=True))
    return build.graph(build.global_avg_pool("logits", x))


def _fire(build: Network, name: str, x: str, squeezed: int, expanded: int) -> str:
    x = _conv_relu(build, f"{name}.squeeze", x, squeezed, 1)
    sides = (_conv_relu(build, f"{name}.expand{size}x{size}", x, expanded, size) for size in (1, 3))
    return build.concat(f"{name}.concat", *sides)


def _conv_relu(build: Network, name: str, x: str, channels: int, size: int) -> str:
    return build.relu(f"{name}_activation", build.conv(name, x, channels, Kernel(size), bias=True))
