"""The workloads' networks in PyTorch, each with the layers, biases, norms and pooling of the zoo's.

Parameters are declared in the order of ours, so that weights go across by position. The one exception is written in
`exchange`: torch projects queries, keys and values by one matrix, because that is how it is fastest.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn import functional

EPSILON_OF_BERT = 1e-12
_STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""MobileNetV2: expansion, channels that come out, blocks, and stride of the first one."""


def perceptron() -> nn.Module:
    """Return 784-512-256-10."""
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10))


class _Average(nn.Module):
    """The mean of each channel."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean((2, 3))


def plain_convolutions() -> nn.Module:
    """Return three convolutions with biases, two of them followed by pooling, and a linear layer on averages."""
    return nn.Sequential(
        *(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(inplace=True)),
        *(_Average(), nn.Linear(64, 10)),
    )


def _normed(inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    return [
        nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]


class _Basic(nn.Module):
    """A residual block of two convolutions; the shortcut is projected where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            *_normed(inputs, outputs, 3, stride), nn.ReLU(inplace=True), *_normed(outputs, outputs, 3)
        )
        changes = stride != 1 or inputs != outputs
        self.shortcut = nn.Sequential(*_normed(inputs, outputs, 1, stride)) if changes else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.inner(x) + self.shortcut(x), inplace=True)


def resnet18() -> nn.Module:
    """Return ResNet-18 for ten classes."""
    layers: list[nn.Module] = [*_normed(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [_Basic(inputs, outputs, stride), _Basic(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, _Average(), nn.Linear(512, 10))


def _divisible(channels: float) -> int:
    rounded = max(8, int(channels + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * channels else rounded


class _Inverted(nn.Module):
    """An inverted residual block."""

    def __init__(self, inputs: int, outputs: int, expansion: int, stride: int) -> None:
        super().__init__()
        middle = inputs * expansion
        expand = [*_normed(inputs, middle, 1), nn.ReLU6(inplace=True)] if expansion != 1 else []
        depthwise = [*_normed(middle, middle, 3, stride, groups=middle), nn.ReLU6(inplace=True)]
        self.inner = nn.Sequential(*expand, *depthwise, *_normed(middle, outputs, 1))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x) if self.adds else self.inner(x)


def mobilenet_v2(width: float = 0.35) -> nn.Module:
    """Return MobileNetV2 for ten classes; narrower ones keep their last 1280 channels."""
    inputs = _divisible(32 * width)
    layers: list[nn.Module] = [*_normed(3, inputs, 3, 2), nn.ReLU6(inplace=True)]
    for expansion, channels, count, stride in _STAGES:
        outputs = _divisible(channels * width)
        for number in range(count):
            layers.append(_Inverted(inputs, outputs, expansion, 1 if number else stride))
            inputs = outputs
    return nn.Sequential(*layers, *_normed(inputs, 1280, 1), nn.ReLU6(inplace=True), _Average(), nn.Linear(1280, 10))


class _EncoderLayer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.projections = nn.Linear(width, 3 * width)
        self.mixed = nn.Linear(width, width)
        self.norm1 = nn.LayerNorm(width, EPSILON_OF_BERT)
        self.inner = nn.Linear(width, 4 * width)
        self.outer = nn.Linear(4 * width, width)
        self.norm2 = nn.LayerNorm(width, EPSILON_OF_BERT)

    def forward(self, x: Tensor) -> Tensor:
        samples, tokens, width = x.shape
        parts = self.projections(x).view(samples, tokens, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        context = functional.scaled_dot_product_attention(query, key, value)
        x = self.norm1(x + self.mixed(context.transpose(1, 2).reshape(samples, tokens, width)))
        return self.norm2(x + self.outer(functional.gelu(self.inner(x))))


class _Encoder(nn.Module):
    """BERT's layers for sequences of 64 tokens, a pooler on the first of them, two classes."""

    def __init__(self, vocabulary: int = 8192, width: int = 256, layers: int = 4, heads: int = 4) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(64, width)
        self.norm = nn.LayerNorm(width, EPSILON_OF_BERT)
        self.layers = nn.Sequential(*(_EncoderLayer(width, heads) for _ in range(layers)))
        self.pooler = nn.Linear(width, width)
        self.logits = nn.Linear(width, 2)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.layers(self.norm(self.words(x) + self.positions.weight))
        return self.logits(torch.tanh(self.pooler(hidden[:, 0])))


NETWORKS: Mapping[str, Callable[[], nn.Module]] = MappingProxyType(
    {
        "mlp": perceptron,
        "cnn": plain_convolutions,
        "resnet": resnet18,
        "mobilenet": mobilenet_v2,
        "encoder": _Encoder,
    }
)
"""Every network by the name a workload gives it."""
