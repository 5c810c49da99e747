"""VGG-11, 16 and 19 (Simonyan and Zisserman), without batch norm and without dropout, as torchvision lays them out."""

from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.models.network import Kernel, Network, scaled

_STAGES = {11: (1, 1, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
"""Convolutions before each of the five poolings."""

_CHANNELS = (64, 128, 256, 512, 512)
_HIDDEN = 4096


def vgg(classes: int, input_shape: tuple[int, ...], depth: int = 16, width: float = 1.0) -> Graph:
    """Return a network of 3x3 convolutions, five halvings and three dense layers."""
    build = Network(f"vgg{depth}")
    x, number = build.input(input_shape), 0
    for stage, convolutions in enumerate(_STAGES[depth]):
        for _ in range(convolutions):
            name = f"features.{number}"
            channels = scaled(_CHANNELS[stage], width)
            x = build.relu(f"{name}.relu", build.conv(name, x, channels, Kernel(), bias=True))
            number += 2  # torchvision counts the activation as a layer
        x = build.max_pool2d(f"features.{number}", x)
        number += 1
    x = build.flatten("flat", x)
    for number in (0, 3):
        x = build.dense(f"classifier.{number}", x, scaled(_HIDDEN, width))
    return build.graph(build.classify(x, classes))
