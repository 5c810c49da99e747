"""Kernels of softmax and of multi-head attention, which works on the heads of some samples at a time.

A head's part of a sequence (tokens, width) is a view of some columns; nothing is copied to take heads apart, because
BLAS takes matrices whose rows lie apart. Sums over keys are products with ones.
"""

import math
from collections.abc import Iterator

import numpy as np

from hedgerow_agent.core.kernels.call import Array, Bound, Call, ScratchCutter
from hedgerow_agent.core.kernels.ones import ones
from hedgerow_plans.graph.tiles import ATTENTION_TILE_ELEMENTS, channels_per_tile


def bind_softmax(call: Call) -> Bound:
    """Return the softmax over the last axis."""
    (source,), (output,) = call.inputs, call.outputs
    row = ScratchCutter(call).take((source.size // source.shape[-1],), source.dtype)
    source, output = (array.reshape(row.size, -1) for array in (source, output))
    return lambda: _softmax(source, output, row, 1.0)


def _softmax(source: Array, output: Array, row: Array, factor: float) -> None:
    """Write the softmax of each row times a positive factor; source and output may be the same."""
    column = row[:, np.newaxis]
    np.maximum.reduce(source, axis=1, out=row)
    np.subtract(source, column, out=output)
    if factor != 1.0:
        np.multiply(output, factor, out=output)
    np.exp(output, out=output)
    np.matmul(output, ones(output.shape[1], output.dtype), out=row)
    np.reciprocal(row, out=row)
    np.multiply(output, column, out=output)


def bind_softmax_grad(call: Call) -> Bound:
    """Return y (dy - sum of dy y)."""
    row = ScratchCutter(call).take((call.inputs[0].size // call.inputs[0].shape[-1],), call.inputs[0].dtype)
    gradient, probabilities, output = (array.reshape(row.size, -1) for array in (*call.inputs, *call.outputs))
    column = row[:, np.newaxis]

    def run() -> None:
        np.vecdot(gradient, probabilities, out=row)
        np.subtract(gradient, column, out=output)
        np.multiply(output, probabilities, out=output)

    return run


def _by_head(sequences: Array, heads: int) -> Array:
    """Return a view (sample, head, token, width of a head)."""
    samples, tokens, width = sequences.shape
    return sequences.reshape(samples, tokens, heads, width // heads).swapaxes(1, 2)


_Tile = tuple[slice, slice]


def _tiles(samples: int, heads: int, scores: int) -> Iterator[_Tile]:
    """Yield which heads of which samples are worked on together."""
    per_tile = channels_per_tile(samples, heads, scores, ATTENTION_TILE_ELEMENTS)
    for sample in range(0, samples, per_tile[0]):
        for head in range(0, heads, per_tile[1]):
            yield slice(sample, sample + per_tile[0]), slice(head, head + per_tile[1])


def bind_multi_head_attention(call: Call) -> Bound:
    """Return softmax(q k' / sqrt(width)) v of every head and, if asked for, the probabilities."""
    heads, tokens = call.integer("heads", 1), [array.shape[1] for array in call.inputs]
    queries, keys, values, outputs = (_by_head(array, heads) for array in (*call.inputs, call.outputs[0]))
    tiles = list(_tiles(len(queries), heads, tokens[0] * tokens[1]))
    scratch = ScratchCutter(call)
    row = scratch.take((queries[tiles[0]][..., 0].size,), queries.dtype)
    # without probabilities to save, all tiles take turns with one place
    place = None if len(call.outputs) > 1 else scratch.take((*queries[tiles[0]].shape[:3], tokens[1]), queries.dtype)
    factor = 1 / math.sqrt(queries.shape[3])

    def attend(tile: _Tile) -> None:
        scores = call.outputs[1][tile] if place is None else place
        np.matmul(queries[tile], keys[tile].swapaxes(2, 3), out=scores)
        rows = scores.reshape(row.size, -1)
        _softmax(rows, rows, row, factor)
        np.matmul(scores, values[tile], out=outputs[tile])

    def run() -> None:
        for tile in tiles:
            attend(tile)

    return run


def bind_attention_grad_scores(call: Call) -> Bound:
    """Return the gradient of queries or keys through the scores' gradient p (dy v' - sum of it p)."""
    probabilities, heads = call.inputs[1], call.inputs[1].shape[1]
    gradient, values, other, output = (
        _by_head(array, heads) for array in (call.inputs[0], *call.inputs[2:], *call.outputs)
    )
    tiles = list(_tiles(len(output), heads, math.prod(probabilities.shape[2:])))
    scratch = ScratchCutter(call)
    row = scratch.take((probabilities[tiles[0]][..., 0].size,), output.dtype)
    buffer = scratch.take(probabilities[tiles[0]].shape, output.dtype)
    rows, column = buffer.reshape(row.size, -1), row[:, np.newaxis]
    scores = buffer if call.node.attributes["of"] == "queries" else buffer.swapaxes(2, 3)
    factor = 1 / math.sqrt(output.shape[3])

    def go_back(tile: _Tile) -> None:
        chances = probabilities[tile].reshape(row.size, -1)
        # the sum of p times (dy v') is that of dy times y, but y is not saved
        np.matmul(gradient[tile], values[tile].swapaxes(2, 3), out=buffer)
        np.vecdot(rows, chances, out=row)
        np.subtract(rows, column, out=rows)
        np.multiply(rows, chances, out=rows)
        np.multiply(rows, factor, out=rows)
        np.matmul(scores, other[tile], out=output[tile])

    def run() -> None:
        for tile in tiles:
            go_back(tile)

    return run


def bind_attention_grad_values(call: Call) -> Bound:
    """Return p' dy of every head."""
    transposed = call.inputs[1].swapaxes(2, 3)
    gradient, output = (_by_head(array, transposed.shape[1]) for array in (call.inputs[0], call.outputs[0]))
    return lambda: np.matmul(transposed, gradient, out=output)


KERNELS = {
    "softmax": bind_softmax,
    "softmax_grad": bind_softmax_grad,
    "multi_head_attention": bind_multi_head_attention,
    "attention_grad_scores": bind_attention_grad_scores,
    "attention_grad_values": bind_attention_grad_values,
}
