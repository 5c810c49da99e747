"""Small convolutional networks for images of a few hundred pixels."""

from hedgerow_plans.graph.builder import Builder
from hedgerow_plans.graph.ir import Graph


def cnn_small(classes: int, input_shape: tuple[int, ...], channels: int = 8) -> Graph:
    """Return two convolutions, one residual block of two more, and a linear layer; the image shrinks to a quarter."""
    build = Builder("cnn-small")
    x = build.relu("relu1", build.conv2d("conv1", build.input(input_shape), channels))
    x = build.max_pool2d("pool1", x)
    x = build.relu("relu2", build.conv2d("conv2", x, 2 * channels))
    inner = build.relu("block.relu1", build.conv2d("block.conv1", x, 2 * channels))
    x = build.add("block.sum", x, build.conv2d("block.conv2", inner, 2 * channels))
    x = build.max_pool2d("pool2", build.relu("block.relu2", x))
    return build.graph(build.linear("logits", build.flatten("flat", x), classes, gain=1.0))


def cnn_plain(classes: int, input_shape: tuple[int, ...], channels: int = 16) -> Graph:
    """Return three convolutions, each twice as wide as the one before, and a linear layer on averaged pixels."""
    build = Builder("cnn-plain")
    x = build.relu("relu1", build.conv2d("conv1", build.input(input_shape), channels))
    x = build.relu("relu2", build.conv2d("conv2", build.max_pool2d("pool1", x), 2 * channels))
    x = build.relu("relu3", build.conv2d("conv3", build.max_pool2d("pool2", x), 4 * channels))
    return build.graph(build.linear("logits", build.global_avg_pool("avgpool", x), classes, gain=1.0))
