"""DenseNet-121 (Huang and others): every layer of a block sees what all layers before it made.

The growing input is one concat per layer of what was there and what is new, which gives the same numbers as
torchvision's concat of all parts before each layer.
"""

from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.models.network import Kernel, Network

_BLOCKS = (6, 12, 24, 16)
_BOTTLENECK = 4


def densenet121(classes: int, input_shape: tuple[int, ...], growth: int = 32) -> Graph:
    """Return a stem, four dense blocks with halvings between them, and a dense layer on averaged pixels."""
    build = Network("densenet121")
    stem = build.conv_norm("features.conv0", "features.norm0", build.input(input_shape), 2 * growth, Kernel(7, 2))
    x = build.max_pool2d("features.pool0", stem, 3, stride=2, padding=1)
    for number, layers in enumerate(_BLOCKS, start=1):
        for layer in range(1, layers + 1):
            x = _layer(build, f"features.denseblock{number}.denselayer{layer}", x, growth)
        if number < len(_BLOCKS):
            x = _transition(build, f"features.transition{number}", x)
    x = build.relu("features.relu5", build.batch_norm("features.norm5", x))
    return build.graph(build.classify_average(x, classes))


def _layer(build: Network, name: str, x: str, growth: int) -> str:
    new = build.relu(f"{name}.relu1", build.batch_norm(f"{name}.norm1", x))
    new = build.conv_norm(f"{name}.conv1", f"{name}.norm2", new, _BOTTLENECK * growth, Kernel(1))
    return build.concat(f"{name}.concat", x, build.conv(f"{name}.conv2", new, growth, Kernel(3)))


def _transition(build: Network, name: str, x: str) -> str:
    y = build.relu(f"{name}.relu", build.batch_norm(f"{name}.norm", x))
    y = build.conv(f"{name}.conv", y, build.shape(x)[0] // 2, Kernel(1))
    return build.avg_pool2d(f"{name}.pool", y, 2)
