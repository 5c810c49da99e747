"""Residual networks (He and others) of 18, 34 and 50 layers, as torchvision lays them out."""

from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.models.network import Kernel, Network, scaled

_BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3)}
_CHANNELS = (64, 128, 256, 512)
_EXPANSION = 4
"""How much wider a bottleneck's output is than its middle."""


def resnet(classes: int, input_shape: tuple[int, ...], depth: int = 18, width: float = 1.0) -> Graph:
    """Return a stem, four stages of residual blocks, and a dense layer on averaged pixels."""
    build = Network(f"resnet{depth}")
    block = _bottleneck if depth >= 50 else _basic
    x = build.conv_norm("conv1", "bn1", build.input(input_shape), scaled(64, width), Kernel(7, 2))
    x = build.max_pool2d("maxpool", x, 3, stride=2, padding=1)
    for stage, count in enumerate(_BLOCKS[depth]):
        for number in range(count):
            stride = 2 if stage and not number else 1
            x = block(build, f"layer{stage + 1}.{number}", x, scaled(_CHANNELS[stage], width), stride)
    return build.graph(build.classify_average(x, classes))


def _basic(build: Network, name: str, x: str, channels: int, stride: int) -> str:
    inner = build.conv_norm(f"{name}.conv1", f"{name}.bn1", x, channels, Kernel(3, stride))
    inner = build.conv_norm(f"{name}.conv2", f"{name}.bn2", inner, channels, Kernel(3), activation="")
    return _closed(build, name, inner, _shortcut(build, name, x, channels, stride))


def _bottleneck(build: Network, name: str, x: str, channels: int, stride: int) -> str:
    wide = _EXPANSION * channels
    inner = build.conv_norm(f"{name}.conv1", f"{name}.bn1", x, channels, Kernel(1))
    inner = build.conv_norm(f"{name}.conv2", f"{name}.bn2", inner, channels, Kernel(3, stride))
    inner = build.conv_norm(f"{name}.conv3", f"{name}.bn3", inner, wide, Kernel(1), activation="")
    return _closed(build, name, inner, _shortcut(build, name, x, wide, stride))


def _shortcut(build: Network, name: str, x: str, channels: int, stride: int) -> str:
    """Return x, or a projection of it where the shape changes."""
    if stride == 1 and build.shape(x)[0] == channels:
        return x
    kernel = Kernel(1, stride)
    return build.conv_norm(f"{name}.downsample.0", f"{name}.downsample.1", x, channels, kernel, activation="")


def _closed(build: Network, name: str, inner: str, shortcut: str) -> str:
    return build.relu(f"{name}.relu", build.add(f"{name}.sum", inner, shortcut))
