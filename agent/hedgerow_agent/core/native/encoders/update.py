"""Updates of parameters and of the optimiser's state."""

import numpy as np

from hedgerow_agent.core.kernels.call import Array, Call
from hedgerow_agent.core.native.draft import Block, Draft, Drafts
from hedgerow_agent.core.native.encoders.elementwise import elements
from hedgerow_plans.graph.tiles import STATE_BLOCK_ELEMENTS


def _sgd(call: Call, block: Block) -> Drafts:
    gradient, *factor = call.inputs
    parameter, *velocity = call.updates
    numbers = (call.number("momentum", 0.0), call.number("weight_decay", 0.0), 0.0, call.number("clip", 0.0))
    operands = (gradient, parameter, block.rate, velocity[0] if velocity else None, factor[0] if factor else None)
    return (elements("sgd", *operands, count=parameter.size, numbers=numbers),)


def _adam(call: Call, block: Block) -> Drafts:
    parameter, first, second = call.updates
    operands, size = (call.inputs[0], parameter, block.rate, first, second, *_after_moments(call)), parameter.size
    return (Draft("adam", operands, _adam_sizes(call), size, 5 * size, _adam_numbers(call), grain=64),)


def _adam8bit(call: Call, block: Block) -> Drafts:
    parameter, *moments = call.updates
    operands, size = (call.inputs[0], parameter, block.rate, *moments, *_after_moments(call)), parameter.size
    blocks = -(-size // STATE_BLOCK_ELEMENTS)
    return (Draft("adam8bit", operands, _adam_sizes(call), blocks, 20 * size, _adam_numbers(call)),)


def _adam_sizes(call: Call) -> tuple[int, int]:
    return call.updates[0].size, int(call.inputs[1].dtype.kind == "i")


def _after_moments(call: Call) -> tuple[Array, Array | None, Array | None]:
    """Return the count of steps, the gradient's factor and the decay of weights, as far as there are any."""
    _gradient, steps, *factor = call.inputs
    decay = call.number("weight_decay", 0.0)
    return steps, factor[0] if factor else None, np.array([decay], np.float32) if decay else None


def _adam_numbers(call: Call) -> tuple[float, float, float, float]:
    return (
        call.number("beta1", 0.9),
        call.number("beta2", 0.999),
        call.number("epsilon", 1e-8),
        call.number("clip", 0.0),
    )


def _count(call: Call, _block: Block) -> Drafts:
    (steps,) = call.updates
    return (Draft("count", (steps,), (1, int(steps.dtype.kind == "i")), units=1, work=1),)


def _embedding(call: Call, _block: Block) -> Drafts:
    tokens, table = call.inputs
    rows, width = table.shape
    sizes, work = (tokens.size, width, rows), tokens.size * width
    return (Draft("embedding", (tokens, table, *call.outputs), sizes, width, work, grain=16),)


def _embedding_grad(call: Call, _block: Block) -> Drafts:
    (gradient, tokens), (output,) = call.inputs, call.outputs
    rows, width = output.shape
    sizes, work = (tokens.size, width, rows), gradient.size + output.size
    return (Draft("embedding_grad", (gradient, tokens, output), sizes, width, work, grain=16),)


def _sgd_rows(call: Call, block: Block) -> Drafts:
    (gradient, tokens), (table,) = call.inputs, call.updates
    rows, width = table.shape
    sizes = (tokens.size, width, rows)
    return (Draft("sgd_rows", (gradient, tokens, table, block.rate), sizes, width, 2 * gradient.size, grain=16),)


ENCODERS = {
    "sgd": _sgd,
    "adam": _adam,
    "adam8bit": _adam8bit,
    "count": _count,
    "embedding": _embedding,
    "embedding_grad": _embedding_grad,
    "sgd_rows": _sgd_rows,
}
