"""The three networks that MiniLearn retrains on a microcontroller: images, movements and spoken words.

The images' and movements' layers are those of its release; that movements are a row of three positions follows from its
dense layer of 96 inputs. For words the release has only the retrained convolution and what comes after it; the layers
before are those of the keyword example of NNoM, the library it runs on, and they lead to the same 11x4 image. Norms are
folded into biases, because the released nets have 8 bits.
"""

from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.models.network import Kernel, Network

_CIFAR_CHANNELS = (32, 32, 16)
_CIFAR_HIDDEN = 256
_HAR_CHANNELS = (32, 32, 32)
_KWS_LAYERS = ((16, 5, True), (32, 3, True), (64, 3, False), (32, 3, False))
"""Channels, window, and whether the time axis is halved afterwards."""
_KWS_HIDDEN = 92


def minilearn_cifar(classes: int, input_shape: tuple[int, ...]) -> Graph:
    """Return three 3x3 convolutions without padding, each pooled, and two dense layers."""
    build = Network("minilearn-cifar")
    x = build.input(input_shape)
    for number, channels in enumerate(_CIFAR_CHANNELS, start=1):
        x = build.max_pool2d(f"pool{number}", _layer(build, number, x, channels, 3))
    x = build.dense("interface", build.flatten("flat", x), _CIFAR_HIDDEN)
    return build.graph(build.classify(x, classes))


def minilearn_har(classes: int, input_shape: tuple[int, ...]) -> Graph:
    """Return three pointwise convolutions over the axes of a window of 90 readings, and one dense layer."""
    build = Network("minilearn-har")
    x = build.input(input_shape)
    for number, channels in enumerate(_HAR_CHANNELS, start=1):
        x = _layer(build, number, x, channels, 1)
    return build.graph(build.classify(x, classes))


def minilearn_kws(classes: int, input_shape: tuple[int, ...]) -> Graph:
    """Return four convolutions over 62 frames of 12 cepstral coefficients, and two dense layers."""
    build = Network("minilearn-kws")
    x = build.input(input_shape)
    for number, (channels, size, halved) in enumerate(_KWS_LAYERS, start=1):
        x = _layer(build, number, x, channels, size)
        if halved:
            x = build.max_pool2d(f"pool{number}", x, (2, 1))
    x = build.dense("interface", build.flatten("flat", x), _KWS_HIDDEN)
    return build.graph(build.classify(x, classes))


def _layer(build: Network, number: int, x: str, channels: int, size: int) -> str:
    convolution = build.conv(f"conv{number}", x, channels, Kernel(size, padding=0), bias=True)
    return build.relu(f"relu{number}", convolution)
