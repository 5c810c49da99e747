"""Pooling in every order: what lies outside the rows, and what lies together inside a pixel."""

import numpy as np

from hedgerow_agent.core.kernels.call import Array, Call
from hedgerow_agent.core.native.draft import Block, Draft, Drafts
from hedgerow_agent.core.native.encoders.dense import column_sums, row_sums
from hedgerow_agent.core.native.encoders.layout import copy
from hedgerow_plans.graph.ir import Order

_MOST_POSITIONS = 121


def window_sizes(call: Call, image: Array, result: Array, kernel: tuple[int, int]) -> tuple[int, ...]:
    """Return the sizes of a window as records have them."""
    return (*image.shape[2:], *result.shape[2:], *kernel, *call.pair("stride", 1), *call.pair("padding", 0))


def _draft(call: Call, op: str, image: Array, pooled: Array) -> Drafts | None:
    """Return a kernel over windows; it writes rows of the larger or of the smaller images."""
    samples, channels = image.shape[:2]
    outer, inner = {
        Order.SAMPLES: (samples * channels, 1),
        Order.PIXELS: (1, samples * channels),
        Order.CHANNELS: (channels, samples),
    }[call.order]
    kernel = call.pair("kernel", 2)
    if kernel[0] * kernel[1] > _MOST_POSITIONS:
        return None
    written = image if op.endswith("grad") else pooled
    sizes = (outer, inner, *window_sizes(call, image, pooled, kernel))
    return (Draft(op, (*call.inputs, *call.outputs), sizes, outer * written.shape[2], 2 * image.size),)


def _max_pool(call: Call, _block: Block) -> Drafts | None:
    return _draft(call, "max_pool", call.inputs[0], call.outputs[0])


def _max_pool_grad(call: Call, _block: Block) -> Drafts | None:
    return _draft(call, "max_pool_grad", call.outputs[0], call.inputs[0])


def _mean_pool(call: Call, _block: Block) -> Drafts | None:
    return _draft(call, "mean_pool", call.inputs[0], call.outputs[0])


def _mean_pool_grad(call: Call, _block: Block) -> Drafts | None:
    return _draft(call, "mean_pool_grad", call.outputs[0], call.inputs[0])


def _global_mean(call: Call, _block: Block) -> Drafts:
    (x,), (output,) = call.inputs, call.outputs
    samples, channels, *pixels = x.shape
    share = 1.0 / (pixels[0] * pixels[1])
    match call.order:
        case Order.PIXELS:
            return (column_sums(x, output, share),)
        case Order.CHANNELS:
            sizes = (channels, pixels[0] * pixels[1], samples)
            return (Draft("middle_sums", (x, output), sizes, channels, x.size, (share,), grain=16),)
        case _:
            return (row_sums(x, output, share),)


def _global_mean_grad(call: Call, _block: Block) -> Drafts | None:
    (gradient,), (output,) = call.inputs, call.outputs
    share = 1.0 / (output.shape[2] * output.shape[3])
    draft = copy(np.broadcast_to(gradient[:, :, np.newaxis, np.newaxis], output.shape), output, share)
    return None if draft is None else (draft,)


ENCODERS = {
    "max_pool2d": _max_pool,
    "max_pool2d_grad": _max_pool_grad,
    "avg_pool2d": _mean_pool,
    "avg_pool2d_grad": _mean_pool_grad,
    "global_avg_pool": _global_mean,
    "global_avg_pool_grad": _global_mean_grad,
}
