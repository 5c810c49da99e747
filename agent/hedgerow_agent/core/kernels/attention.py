"""Kernels of softmax and of multi-head attention, which works on one head of one sample at a time.

A head's part of a sequence (tokens, width) is a view of some columns; nothing is copied to take heads apart.
"""

import math
from collections.abc import Iterator

import numpy as np

from hedgerow_agent.core.kernels.call import Array, Bound, Call, ScratchCutter


def bind_softmax(call: Call) -> Bound:
    """Return the softmax over the last axis."""
    (source,), (output,) = call.inputs, call.outputs
    row = ScratchCutter(call).take(source.shape[:-1], source.dtype)
    return lambda: _softmax(source, output, row)


def _softmax(source: Array, output: Array, row: Array) -> None:
    """Write the softmax of the last axis; source and output may be the same."""
    column = row[..., np.newaxis]
    np.maximum.reduce(source, axis=-1, out=row)
    np.subtract(source, column, out=output)
    np.exp(output, out=output)
    np.add.reduce(output, axis=-1, out=row)
    np.divide(output, column, out=output)


def bind_softmax_grad(call: Call) -> Bound:
    """Return y (dy - sum of dy y)."""
    (gradient, probabilities), (output,) = call.inputs, call.outputs
    row = ScratchCutter(call).take(output.shape[:-1], output.dtype)
    column = row[..., np.newaxis]

    def run() -> None:
        np.multiply(gradient, probabilities, out=output)
        np.add.reduce(output, axis=-1, out=row)
        np.subtract(gradient, column, out=output)
        np.multiply(output, probabilities, out=output)

    return run


def _heads(samples: int, heads: int) -> Iterator[tuple[int, int]]:
    return ((sample, head) for sample in range(samples) for head in range(heads))


def _columns(sequences: Array, sample: int, head: int, heads: int) -> Array:
    """Return the columns of a head as a matrix (tokens, width of a head)."""
    width = sequences.shape[2] // heads
    view: Array = sequences[sample, :, head * width : (head + 1) * width]
    return view


def bind_multi_head_attention(call: Call) -> Bound:
    """Return softmax(q k' / sqrt(width)) v of every head and, if asked for, the probabilities."""
    (queries, keys, values), output = call.inputs, call.outputs[0]
    heads, scratch = call.integer("heads", 1), ScratchCutter(call)
    row = scratch.take((queries.shape[1],), queries.dtype)
    one_head = (1, 1, queries.shape[1], keys.shape[1])
    # without probabilities to save, all heads take turns with one place
    places = call.outputs[1] if len(call.outputs) > 1 else scratch.take(one_head, queries.dtype)
    factor = 1 / math.sqrt(queries.shape[2] // heads)

    def attend(sample: int, head: int) -> None:
        scores = places[sample % places.shape[0], head % places.shape[1]]
        query, key, value = (_columns(it, sample, head, heads) for it in (queries, keys, values))
        np.matmul(query, key.T, out=scores)
        np.multiply(scores, factor, out=scores)
        _softmax(scores, scores, row)
        np.matmul(scores, value, out=_columns(output, sample, head, heads))

    def run() -> None:
        for sample, head in _heads(len(queries), heads):
            attend(sample, head)

    return run


def bind_attention_grad_scores(call: Call) -> Bound:
    """Return the gradient of queries or keys through the scores' gradient p (dy v' - sum of it p)."""
    (gradient, probabilities, values, other), (output,) = call.inputs, call.outputs
    heads, scratch = probabilities.shape[1], ScratchCutter(call)
    row = scratch.take(probabilities.shape[2:3], output.dtype)
    buffer = scratch.take(probabilities.shape[2:], output.dtype)
    of_queries = call.node.attributes["of"] == "queries"
    factor, column = 1 / math.sqrt(output.shape[2] // heads), row[:, np.newaxis]

    def go_back(sample: int, head: int) -> None:
        chances = probabilities[sample, head]
        incoming, value = _columns(gradient, sample, head, heads), _columns(values, sample, head, heads)
        # the sum of p times (dy v') is that of dy times y, but y is not saved
        np.matmul(incoming, value.T, out=buffer)
        np.einsum("ij,ij->i", buffer, chances, out=row)
        np.subtract(buffer, column, out=buffer)
        np.multiply(buffer, chances, out=buffer)
        np.multiply(buffer, factor, out=buffer)
        scores = buffer if of_queries else buffer.T
        np.matmul(scores, _columns(other, sample, head, heads), out=_columns(output, sample, head, heads))

    def run() -> None:
        for sample, head in _heads(len(output), heads):
            go_back(sample, head)

    return run


def bind_attention_grad_values(call: Call) -> Bound:
    """Return p' dy of every head."""
    (gradient, probabilities), (output,) = call.inputs, call.outputs
    heads = probabilities.shape[1]

    def run() -> None:
        for sample, head in _heads(len(output), heads):
            incoming, target = (_columns(it, sample, head, heads) for it in (gradient, output))
            np.matmul(probabilities[sample, head].T, incoming, out=target)

    return run


KERNELS = {
    "softmax": bind_softmax,
    "softmax_grad": bind_softmax_grad,
    "multi_head_attention": bind_multi_head_attention,
    "attention_grad_scores": bind_attention_grad_scores,
    "attention_grad_values": bind_attention_grad_values,
}
