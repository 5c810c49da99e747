"""Norms of groups of channels within a sample, and of a weight's rows, which are groups of one channel."""

import math

from hedgerow_agent.core.kernels.call import Array, Call
from hedgerow_agent.core.native.draft import Block, Draft, Drafts, Room

_EPSILON = 1e-5

Sizes = tuple[int, int, int, int]
"""Samples, groups, channels of a group, pixels."""


def group_sizes(images: Array, groups: int) -> Sizes:
    """Return the sizes of images (sample, channel, row, column) in the order of the samples."""
    samples, channels, *pixels = images.shape
    return samples, groups, channels // groups, math.prod(pixels)


def sums_of_channels(gradient: Array, output: Array) -> Draft:
    """Return the sums over samples and pixels of images in the order of the samples."""
    sizes = group_sizes(gradient, 1)
    return Draft("group_products", (gradient, None, None, output), sizes, output.size, gradient.size)


def _norm(operands: tuple[Array | None, ...], sizes: Sizes, call: Call) -> Draft:
    numbers = (call.number("epsilon", _EPSILON),)
    return Draft("group_norm", operands, sizes, sizes[0] * sizes[1], 4 * math.prod(sizes), numbers)


def _grad(operands: tuple[Array | None, ...], sizes: Sizes) -> Draft:
    return Draft("group_norm_grad", operands, sizes, sizes[0] * sizes[1], 6 * math.prod(sizes))


def _group_norm(call: Call, _block: Block) -> Drafts:
    saved = call.outputs[1] if len(call.outputs) > 1 else None
    sizes = group_sizes(call.inputs[0], call.integer("groups", 1))
    return (_norm((*call.inputs, call.outputs[0], saved), sizes, call),)


def _group_norm_grad_input(call: Call, _block: Block) -> Drafts:
    return (_grad((*call.inputs, *call.outputs), group_sizes(call.inputs[1], call.integer("groups", 1))),)


def _group_norm_grad_weight(call: Call, _block: Block) -> Drafts:
    gradient, (output,) = call.inputs[0], call.outputs
    sizes = group_sizes(gradient, call.integer("groups", 1))
    return (Draft("group_products", (*call.inputs, output), sizes, output.size, 2 * gradient.size),)


def _row_sizes(weight: Array) -> Sizes:
    return len(weight), 1, 1, weight.size // len(weight)


def _weight_standardisation(call: Call, _block: Block) -> Drafts:
    (weight,), (output,) = call.inputs, call.outputs
    return (_norm((weight, None, None, output), _row_sizes(weight), call),)


def _weight_standardisation_grad(call: Call, _block: Block) -> Drafts:
    """Return the standardised weight made again for its statistics, and then the gradient in its place."""
    (gradient, weight), (output,) = call.inputs, call.outputs
    sizes, statistics = _row_sizes(weight), Room(call).take(2 * len(weight))
    again = _norm((weight, None, None, output, statistics), sizes, call)
    return again, _grad((gradient, weight, statistics, None, output), sizes)


ENCODERS = {
    "group_norm": _group_norm,
    "group_norm_grad_input": _group_norm_grad_input,
    "group_norm_grad_weight": _group_norm_grad_weight,
    "weight_standardisation": _weight_standardisation,
    "weight_standardisation_grad": _weight_standardisation_grad,
}
