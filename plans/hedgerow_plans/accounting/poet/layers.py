"""Layers as POET counts them: output bytes, floating point operations, and what is read; backward is one chain."""

import math
from dataclasses import dataclass, field

from hedgerow_plans.accounting.poet.chips import Chip
from hedgerow_plans.bare import BareProblem

_BYTES_PER_ELEMENT = 4
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of a forward pass."""

    shape: Shape
    flops: int
    inputs: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Bytes of its output."""
        return math.prod(self.shape) * _BYTES_PER_ELEMENT


@dataclass(slots=True)
class Stack:
    """A forward pass that is being written; every method returns the number of the layer it adds."""

    layers: list[Layer] = field(default_factory=list)

    @property
    def top(self) -> int:
        """The number of the last layer."""
        return len(self.layers) - 1

    def add(self, shape: Shape, flops: int, *inputs: int) -> int:
        """Add a layer that reads others; the last one if none is named."""
        self.layers.append(Layer(shape, flops, inputs or ((self.top,) if self.layers else ())))
        return self.top

    def input(self, *shape: int) -> int:
        """Add the samples; reading them again is free."""
        return self.add(shape, 0)

    def convolve(self, channels: int, window: int, stride: int = 1, padding: int = 0, source: int | None = None) -> int:
        """Add a convolution, charged for every pixel of its input."""
        source = self.top if source is None else source
        deep, side, _ = self.layers[source].shape
        out = _side(side, window, stride, padding)
        shape = (channels, out, out)
        return self.add(shape, 2 * window**2 * deep * side**2 * channels + math.prod(shape), source)

    def pool(self, window: int, stride: int) -> int:
        """Add a pooling layer, of the maximum or of the mean."""
        channels, side, _ = self.layers[self.top].shape
        out = _side(side, window, stride, 0)
        return self.add((channels, out, out), 2 * window**2 * channels * out**2)

    def normalise(self) -> int:
        """Add a batch norm."""
        return self._alike(2)

    def rectify(self) -> int:
        """Add a ReLU; dropout and flattening count the same."""
        return self._alike(1)

    def flatten(self) -> int:
        """Add a layer that only changes the shape, and is charged for it."""
        elements = math.prod(self.layers[self.top].shape)
        return self.add((elements,), elements)

    def linear(self, width: int) -> int:
        """Add a linear layer with a bias, charged for one row."""
        *rows, before = self.layers[self.top].shape
        return self.add((*rows, width), 2 * (before + 1) * width + width)

    def sum(self, other: int) -> int:
        """Add the sum of the last layer and another."""
        shape = self.layers[self.top].shape
        return self.add(shape, math.prod(shape), other, self.top)

    def compare(self, *shape: int) -> int:
        """Add the loss: every output against every input."""
        return self.add(shape, math.prod(shape) * math.prod(self.layers[self.top].shape))

    def _alike(self, flops_per_element: int) -> int:
        shape = self.layers[self.top].shape
        return self.add(shape, flops_per_element * math.prod(shape))


def _side(side: int, window: int, stride: int, padding: int) -> int:
    return (side + 2 * padding - window) // stride + 1


def training_problem(name: str, forward: list[Layer], chip: Chip) -> BareProblem:
    """Return forward and backward as a bare problem: picojoules, nanoseconds and bytes.

    The gradient of a layer costs twice the layer, is as large as the output of the layer after it, and reads both and
    the gradient before it.
    """
    count = len(forward)
    backward = [
        Layer(forward[at + 1].shape, 2 * forward[at].flops, tuple(sorted({at, at + 1, 2 * count - 3 - at})))
        for at in range(count - 2, -1, -1)
    ]
    layers = [*forward, *backward]
    return BareProblem(
        name=name,
        bytes=tuple(layer.bytes for layer in layers),
        cost=tuple(chip.compute_picojoules(layer.flops) for layer in layers),
        time=tuple(chip.compute_nanoseconds(layer.flops) for layer in layers),
        pages=tuple(chip.page_picojoules(layer.bytes) for layer in layers),
        inputs=tuple(tuple(sorted(layer.inputs)) for layer in layers),
    )
