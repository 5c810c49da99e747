"""The fully connected layer, products of matrices, and sums over rows."""

import math
from dataclasses import dataclass, replace

from hedgerow_agent.core.kernels.call import Array, Call
from hedgerow_agent.core.native.draft import Block, Draft, Drafts, Room
from hedgerow_agent.core.native.encoders.groups import sums_of_channels
from hedgerow_plans.graph.ir import Order

_GRAIN_ROWS = 6
_GRAIN_COLUMNS = 16
_MOST_STRANDS = 8
"""Runs of pixels whose sums are taken apart; more than there will be threads, so that work can be shared evenly."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Rows and columns of a product, terms of its sums, and which of its factors are stored turned."""

    m: int
    n: int
    k: int
    turn_a: bool = False
    turn_b: bool = False


def product(a: Array, b: Array, c: Array, shape: Shape, row: Array | None = None) -> Draft:
    """Return C = A B (+ a row), cut by whichever of its sides is longer."""
    by_columns = shape.n >= shape.m
    return Draft(
        "product",
        (a, b, c, row),
        (shape.m, shape.n, shape.k, int(shape.turn_a), int(shape.turn_b), int(by_columns)),
        units=shape.n if by_columns else shape.m,
        work=shape.m * shape.n * shape.k // 8,
        grain=_GRAIN_COLUMNS if by_columns else _GRAIN_ROWS,
    )


def take_product(a: Array, b: Array, c: Array, shape: Shape, rate: Array) -> Draft:
    """Return C -= rate A B."""
    return replace(product(a, b, c, shape, rate), op="take_product")


def products(a: Array, b: Array, c: Array, shape: Shape, many: tuple[int, int, int, int]) -> Draft:
    """Return several products; `many` is how many, and the floats from one A, B and C to the next."""
    turned = (int(shape.turn_a), int(shape.turn_b))
    sizes = (shape.m, shape.n, shape.k, *turned, *many)
    return Draft("products", (a, b, c), sizes, units=many[0], work=many[0] * shape.m * shape.n * shape.k // 8)


def _linear(call: Call, _block: Block) -> Drafts:
    x, weight, *bias = call.inputs
    outputs, inputs = weight.shape
    shape = Shape(x.size // inputs, outputs, inputs, turn_b=weight.flags.c_contiguous)
    return (product(x, weight, call.outputs[0], shape, bias[0] if bias else None),)


def _linear_grad_input(call: Call, _block: Block) -> Drafts:
    gradient, weight = call.inputs
    outputs, inputs = weight.shape
    shape = Shape(gradient.size // outputs, inputs, outputs, turn_b=not weight.flags.c_contiguous)
    return (product(gradient, weight, call.outputs[0], shape),)


def _linear_grad_weight(call: Call, _block: Block) -> Drafts:
    gradient, x = call.inputs
    weight = call.outputs[0]
    first, second, shape = _factors_of_samples(gradient, x, weight)
    return (product(first, second, weight, shape),)


def _factors_of_samples(gradient: Array, x: Array, weight: Array) -> tuple[Array, Array, Shape]:
    """Return the factors of dy' x for a weight, or of x' dy for one that lies by inputs."""
    (outputs, inputs), rows = weight.shape, x.size // weight.shape[1]
    if weight.flags.c_contiguous:
        return gradient, x, Shape(outputs, inputs, rows, turn_a=True)
    return x, gradient, Shape(inputs, outputs, rows, turn_a=True)


def _sgd_linear(call: Call, block: Block) -> Drafts:
    gradient, x = call.inputs
    weight = call.updates[0]
    first, second, shape = _factors_of_samples(gradient, x, weight)
    return (take_product(first, second, weight, shape, block.rate),)


def _matmul(call: Call, _block: Block) -> Drafts | None:
    (first, second), (output,) = call.inputs, call.outputs
    if first.shape[:-2] != second.shape[:-2]:
        return None
    turn_a, turn_b = (call.node.attributes.get(f"transpose_{name}", False) is True for name in ("first", "second"))
    m, n = output.shape[-2:]
    k = first.shape[-2] if turn_a else first.shape[-1]
    count = math.prod(output.shape[:-2])
    return (products(first, second, output, Shape(m, n, k, turn_a, turn_b), (count, m * k, k * n, m * n)),)


def column_sums(matrix: Array, sums: Array, factor: float = 1.0) -> Draft:
    """Return the sums of the columns of a matrix, times a number."""
    rows, columns = matrix.size // sums.size, sums.size
    return Draft("column_sums", (matrix, sums), (rows, columns), columns, matrix.size, (factor,), grain=16)


def row_sums(matrix: Array, sums: Array, factor: float = 1.0) -> Draft:
    """Return the sums of the rows of a matrix, times a number."""
    return Draft("row_sums", (matrix, sums), (sums.size, matrix.size // sums.size), sums.size, matrix.size, (factor,))


def strands_of(pixels: int, floats: int, each: int) -> int:
    """Return how many strands there is room for, `each` floats for one."""
    return max(0, min(_MOST_STRANDS, pixels, floats // each))


def join(partial: Array, sums: Array, strands: int, variance: Array | None = None, epsilon: float = 0.0) -> Draft:
    """Return the sum of partial sums, divided by deviations if there are any."""
    sizes, work = (0, sums.size, strands), sums.size * strands
    return Draft("join", (partial, sums, variance), sizes, sums.size, work, (1.0, epsilon), grain=16)


def channel_sums(call: Call, images: Array, sums: Array) -> Drafts:
    """Return the sums of channels of images by pixels."""
    pixels, room = images.size // sums.size, Room(call)
    strands = strands_of(pixels, room.left, sums.size)
    if strands < 2:
        return (column_sums(images, sums),)
    partial = room.take(strands * sums.size)
    sizes = (pixels, sums.size, strands)
    return (Draft("strand_sums", (images, partial), sizes, strands, images.size), join(partial, sums, strands))


def _bias_grad(call: Call, _block: Block) -> Drafts:
    (gradient,), (output,) = call.inputs, call.outputs
    if call.order is Order.PIXELS:
        return channel_sums(call, gradient, output)
    if call.order is Order.CHANNELS:
        return (row_sums(gradient, output),)
    first = call.node.attributes.get("channels", "first") == "first"
    of_images = gradient.ndim > 2 and first
    return (sums_of_channels(gradient, output) if of_images else column_sums(gradient, output),)


ENCODERS = {
    "linear": _linear,
    "linear_grad_input": _linear_grad_input,
    "linear_grad_weight": _linear_grad_weight,
    "sgd_linear": _sgd_linear,
    "matmul": _matmul,
    "bias_grad": _bias_grad,
}
