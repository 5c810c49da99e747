"""InceptionV3 (Szegedy and others) as torchvision lays it out: blocks of parallel branches that are put side by side.

A training graph has one output, so the auxiliary classifier is left out unless asked for.
"""

from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.models.network import Kernel, Network, scaled

_EPSILON = 1e-3
_POINT = Kernel(1)
_ROW = Kernel((1, 7), padding=(0, 3))
_COLUMN = Kernel((7, 1), padding=(3, 0))
_SHORT_ROW = Kernel((1, 3), padding=(0, 1))
_SHORT_COLUMN = Kernel((3, 1), padding=(1, 0))
_HALVING = Kernel(3, 2, 0)


class _Scaled(Network):
    """A builder that remembers which share of the channels is wanted."""

    def __init__(self, name: str, width: float) -> None:
        super().__init__(name)
        self.width = width


def inceptionv3(classes: int, input_shape: tuple[int, ...], width: float = 1.0, auxiliary: bool = False) -> Graph:
    """Return the network; with `auxiliary` it has a second output, the logits of the classifier half way."""
    build = _Scaled("inceptionv3", width)
    x = _stem(build, build.input(input_shape))
    for name, pooled in (("Mixed_5b", 32), ("Mixed_5c", 64), ("Mixed_5d", 64)):
        x = _mixed_a(build, name, x, pooled)
    x = _mixed_b(build, "Mixed_6a", x)
    for name, channels in (("Mixed_6b", 128), ("Mixed_6c", 160), ("Mixed_6d", 160), ("Mixed_6e", 192)):
        x = _mixed_c(build, name, x, channels)
    more = (_auxiliary(build, x, classes),) if auxiliary else ()
    x = _mixed_d(build, "Mixed_7a", x)
    for name in ("Mixed_7b", "Mixed_7c"):
        x = _mixed_e(build, name, x)
    return build.graph(build.classify_average(x, classes), *more)


def _conv(build: _Scaled, name: str, x: str, outputs: int, kernel: Kernel = _POINT) -> str:
    y = build.conv(f"{name}.conv", x, scaled(outputs, build.width), kernel)
    return build.relu(f"{name}.relu", build.batch_norm(f"{name}.bn", y, epsilon=_EPSILON))


def _chain(build: _Scaled, name: str, x: str, *layers: tuple[int, Kernel]) -> str:
    """Add convolutions one after the other, called `<name>_1` and so on."""
    for number, (outputs, kernel) in enumerate(layers, start=1):
        x = _conv(build, f"{name}_{number}", x, outputs, kernel)
    return x


def _stem(build: _Scaled, x: str) -> str:
    x = _conv(build, "Conv2d_1a_3x3", x, 32, _HALVING)
    x = _conv(build, "Conv2d_2a_3x3", x, 32, Kernel(3, padding=0))
    x = build.max_pool2d("maxpool1", _conv(build, "Conv2d_2b_3x3", x, 64, Kernel(3)), 3, stride=2)
    x = _conv(build, "Conv2d_3b_1x1", x, 80)
    return build.max_pool2d("maxpool2", _conv(build, "Conv2d_4a_3x3", x, 192, Kernel(3, padding=0)), 3, stride=2)


def _pooled(build: _Scaled, name: str, x: str, outputs: int) -> str:
    average = build.avg_pool2d(f"{name}.average", x, 3, stride=1, padding=1)
    return _conv(build, f"{name}.branch_pool", average, outputs)


def _mixed_a(build: _Scaled, name: str, x: str, pooled: int) -> str:
    return build.concat(
        f"{name}.concat",
        _conv(build, f"{name}.branch1x1", x, 64),
        _chain(build, f"{name}.branch5x5", x, (48, _POINT), (64, Kernel(5))),
        _chain(build, f"{name}.branch3x3dbl", x, (64, _POINT), (96, Kernel(3)), (96, Kernel(3))),
        _pooled(build, name, x, pooled),
    )


def _mixed_b(build: _Scaled, name: str, x: str) -> str:
    return build.concat(
        f"{name}.concat",
        _conv(build, f"{name}.branch3x3", x, 384, _HALVING),
        _chain(build, f"{name}.branch3x3dbl", x, (64, _POINT), (96, Kernel(3)), (96, _HALVING)),
        build.max_pool2d(f"{name}.pool", x, 3, stride=2),
    )


def _mixed_c(build: _Scaled, name: str, x: str, channels: int) -> str:
    double = ((channels, _POINT), (channels, _COLUMN), (channels, _ROW), (channels, _COLUMN), (192, _ROW))
    return build.concat(
        f"{name}.concat",
        _conv(build, f"{name}.branch1x1", x, 192),
        _chain(build, f"{name}.branch7x7", x, (channels, _POINT), (channels, _ROW), (192, _COLUMN)),
        _chain(build, f"{name}.branch7x7dbl", x, *double),
        _pooled(build, name, x, 192),
    )


def _mixed_d(build: _Scaled, name: str, x: str) -> str:
    return build.concat(
        f"{name}.concat",
        _chain(build, f"{name}.branch3x3", x, (192, _POINT), (320, _HALVING)),
        _chain(build, f"{name}.branch7x7x3", x, (192, _POINT), (192, _ROW), (192, _COLUMN), (192, _HALVING)),
        build.max_pool2d(f"{name}.pool", x, 3, stride=2),
    )


def _mixed_e(build: _Scaled, name: str, x: str) -> str:
    single = _conv(build, f"{name}.branch3x3_1", x, 384)
    double = _chain(build, f"{name}.branch3x3dbl", x, (448, _POINT), (384, Kernel(3)))
    return build.concat(
        f"{name}.concat",
        _conv(build, f"{name}.branch1x1", x, 320),
        *_split(build, f"{name}.branch3x3_2", single),
        *_split(build, f"{name}.branch3x3dbl_3", double),
        _pooled(build, name, x, 192),
    )


def _split(build: _Scaled, name: str, x: str) -> tuple[str, str]:
    return _conv(build, f"{name}a", x, 384, _SHORT_ROW), _conv(build, f"{name}b", x, 384, _SHORT_COLUMN)


def _auxiliary(build: _Scaled, x: str, classes: int) -> str:
    x = _conv(build, "AuxLogits.conv0", build.avg_pool2d("AuxLogits.average", x, 5, stride=3), 128)
    x = build.global_avg_pool("AuxLogits.avgpool", _conv(build, "AuxLogits.conv1", x, 768, Kernel(5, padding=0)))
    return build.linear("AuxLogits.fc", x, classes, gain=1.0)
