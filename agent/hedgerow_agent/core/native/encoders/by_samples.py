"""Convolutions of images as their shapes say, sample by sample: what programs for small budgets use."""

import math
from dataclasses import dataclass

from hedgerow_agent.core.kernels.call import Array, Call
from hedgerow_agent.core.native.draft import Draft, Drafts, Room
from hedgerow_agent.core.native.encoders.dense import Shape, product
from hedgerow_agent.core.native.encoders.pooling import window_sizes
from hedgerow_agent.core.native.layout import MOST_PARTS

_MOST_POSITIONS = 121
_ROWS = 4
"""Channels of the target that a kernel computes at once; work is never cut inside such a block."""

_GAP_FLOATS = 24
_STACK_FLOATS = 10_240
"""What a kernel keeps free behind its planes, and what it takes of the stack if scratch cannot hold one channel."""


@dataclass(frozen=True, slots=True)
class _Layer:
    """A convolution, whichever of its tensors is being computed."""

    call: Call
    image: Array
    weight: Array
    result: Array

    @property
    def groups(self) -> int:
        return self.call.integer("groups", 1)

    @property
    def kernel(self) -> tuple[int, int]:
        return self.weight.shape[2], self.weight.shape[3]

    @property
    def stride(self) -> tuple[int, int]:
        return self.call.pair("stride", 1)

    @property
    def padding(self) -> tuple[int, int]:
        return self.call.pair("padding", 0)

    @property
    def pointwise(self) -> bool:
        return self.kernel == self.stride == (1, 1) and self.padding == (0, 0)

    @property
    def pixels(self) -> int:
        return math.prod(self.result.shape[2:])

    def near_image(self) -> tuple[int, int]:
        """Return the floats of a channel of the image that is copied near, and the columns of its planes."""
        each = zip(self.result.shape[2:], self.kernel, self.stride, strict=True)
        down, across = ((count + (size - 1) // step, min(step, size)) for count, size, step in each)
        return math.prod((*down, *across)), across[0]

    def near_gradient(self) -> int:
        """Return the floats of a channel of the result's gradient that is copied near."""
        each = zip(self.image.shape[2:], self.kernel, self.stride, self.padding, strict=True)
        return math.prod((size - 1) // step + (side - 1 + pad) // step + 1 for side, size, step, pad in each)

    def blocks(self, channels: int) -> int:
        """Return how many blocks the channels of all groups make."""
        return self.groups * -(-channels // self.groups // _ROWS)

    def draft(self, op: str, operands: tuple[Array | None, ...], units: int, needed: int) -> Drafts | None:
        """Return a kernel that copies channels near; None if `needed` floats, of one channel, fit nowhere."""
        room = Room(self.call)
        parts = MOST_PARTS if needed + _GAP_FLOATS <= _STACK_FLOATS else room.left // (needed + _GAP_FLOATS)
        if not parts:
            return None
        window = window_sizes(self.call, self.image, self.result, self.kernel)
        sizes = (len(self.image), self.image.shape[1], self.result.shape[1], *window, self.groups)
        work = self.result.size // len(self.weight) * self.weight.size // 8
        given = (*operands, room.take(room.left) if room.left else None)
        return (Draft(op, given, sizes, units, work, most_parts=min(parts, MOST_PARTS)),)

    def spots(self, source: Array, target: Array, *, turned: bool, bias: Array | None = None) -> Drafts:
        """Return the products of a window of one pixel, one for each group of each sample."""
        rows, terms = target.shape[1] // self.groups, source.shape[1] // self.groups
        sizes = (len(source), rows, terms, self.pixels, self.groups, int(turned))
        units, work = len(source) * target.shape[1], target.size * terms // 8
        return (Draft("spots", (source, self.weight, target, bias), sizes, units, work, grain=6),)


def _known(weight: Array) -> bool:
    return bool(weight.shape[2] * weight.shape[3] <= _MOST_POSITIONS)


def forward(call: Call) -> Drafts | None:
    """Return the convolution of x with w, plus b."""
    x, weight, *bias = call.inputs
    layer, added = _Layer(call, x, weight, call.outputs[0]), bias[0] if bias else None
    if not _known(weight):
        return None
    if layer.pointwise and layer.pixels == layer.groups == 1:
        shape = Shape(len(x), len(weight), weight.shape[1], turn_b=True)
        return (product(x, weight, layer.result, shape, added),)
    if layer.pointwise:
        return layer.spots(x, layer.result, turned=False, bias=added)
    operands = (x, weight, layer.result, added)
    return layer.draft("plain_forward", operands, len(x) * layer.blocks(len(weight)), layer.near_image()[0])


def grad_input(call: Call) -> Drafts | None:
    """Return the gradient of x."""
    gradient, weight = call.inputs
    layer = _Layer(call, call.outputs[0], weight, gradient)
    if not _known(weight):
        return None
    if layer.pointwise and layer.pixels == layer.groups == 1:
        return (product(gradient, weight, layer.image, Shape(len(gradient), weight.shape[1], len(weight))),)
    if layer.pointwise:
        return layer.spots(gradient, layer.image, turned=True)
    units = len(gradient) * layer.blocks(layer.image.shape[1])
    return layer.draft("plain_grad_input", (gradient, weight, layer.image, None), units, layer.near_gradient())


def grad_weight(call: Call) -> Drafts | None:
    """Return the gradient of w."""
    (gradient, x), (weight,) = call.inputs, call.outputs
    if not _known(weight):
        return None
    layer = _Layer(call, x, weight, gradient)
    plane, columns = layer.near_image()
    down, across = gradient.shape[2:]
    spread_out = -(-((down - 1) * columns + across) // 8) * 8  # a channel of the gradient, rows as far apart as x's
    needed = plane + min(_ROWS, len(weight) // layer.groups) * spread_out
    units = layer.blocks(len(weight)) * weight.shape[1]
    return layer.draft("plain_grad_weight", (gradient, x, weight, None), units, needed)
