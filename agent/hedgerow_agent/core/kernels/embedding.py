"""Kernels of tables that tokens choose from, and of parameters added to every sample."""

import numpy as np

from hedgerow_agent.core.kernels.call import Bound, Call, ScratchCutter
from hedgerow_plans.graph.tiles import UPDATE_TILE_ELEMENTS, rows_per_tile

_TOKENS_AT_ONCE = 8192


def bind_embedding(call: Call) -> Bound:
    """Return the row of each token; that tokens are within the table is checked when samples are chosen."""
    (tokens, table), (output,) = call.inputs, call.outputs
    # Some at a time, because numpy makes a copy of the tokens twice as wide to index with them.
    chosen, rows = tokens.reshape(-1), output.reshape(-1, table.shape[1])
    parts = [slice(first, first + _TOKENS_AT_ONCE) for first in range(0, len(chosen), _TOKENS_AT_ONCE)]
    pieces = [(chosen[part], rows[part]) for part in parts]

    def run() -> None:
        for some, result in pieces:
            # Any mode but "raise" lets numpy write straight into `out`.
            np.take(table, some, axis=0, out=result, mode="clip")

    return run


def bind_embedding_grad(call: Call) -> Bound:
    """Add each token's gradient to its row; rows without a token get zeros."""
    (gradient, tokens), (output,) = call.inputs, call.outputs
    rows, chosen = gradient.reshape(-1, gradient.shape[-1]), tokens.reshape(-1)

    def run() -> None:
        output.fill(0)
        for row, token in zip(rows, chosen, strict=True):
            target = output[token]
            np.add(target, row, out=target)

    return run


def bind_sgd_rows(call: Call) -> Bound:
    """Subtract rate times gradient from the rows that tokens chose; the others have no gradient.

    Sorting the tokens to add up equal ones first was slower: most tokens of a batch differ.
    """
    (table,), runtime, width = call.updates, call.runtime, call.inputs[0].shape[-1]
    gradient, tokens = call.inputs[0].reshape(-1, width), call.inputs[1].reshape(-1)
    tile = rows_per_tile(len(tokens), width, UPDATE_TILE_ELEMENTS)
    buffer = ScratchCutter(call).take((tile, width), gradient.dtype)
    tiles = [slice(first, first + tile) for first in range(0, len(tokens), tile)]

    def change(part: slice) -> None:
        chosen = tokens[part].tolist()
        steps = buffer[: len(chosen)]
        np.multiply(gradient[part], runtime.learning_rate, out=steps)
        for step, token in zip(steps, chosen, strict=True):
            row = table[token]
            np.subtract(row, step, out=row)

    def run() -> None:
        for part in tiles:
            change(part)

    return run


def bind_add_parameter(call: Call) -> Bound:
    """Return x + p, p spread over the batch."""
    (source, added), (output,) = call.inputs, call.outputs
    return lambda: np.add(source, added, out=output)


def bind_sum_to(call: Call) -> Bound:
    """Sum over the batch and over the axes in front of those that remain."""
    (source,), (output,) = call.inputs, call.outputs
    axes = tuple(range(source.ndim - output.ndim))
    return lambda: np.add.reduce(source, axis=axes, out=output)


KERNELS = {
    "embedding": bind_embedding,
    "embedding_grad": bind_embedding_grad,
    "sgd_rows": bind_sgd_rows,
    "add_parameter": bind_add_parameter,
    "sum_to": bind_sum_to,
}
