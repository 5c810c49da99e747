"""Kernels that only move numbers: each output, or each part of it, is a copy of a view."""

from collections.abc import Sequence

import numpy as np

from hedgerow_agent.core.kernels.call import Array, Bound, Call


def bind_concat(call: Call) -> Bound:
    """Put the inputs side by side."""
    (output,) = call.outputs
    return _copies(_parts(output, call.inputs), call.inputs)


def bind_split(call: Call) -> Bound:
    """Copy each part into an output of its own."""
    (source,) = call.inputs
    return _copies(call.outputs, _parts(source, call.outputs))


def bind_slice(call: Call) -> Bound:
    """Copy the part that begins at `start`."""
    (source,), (output,) = call.inputs, call.outputs
    return _copies((output,), (source[_inside(call.integers("start"), output.shape, source.ndim)],))


def bind_pad(call: Call) -> Bound:
    """Copy the input into the middle of a constant."""
    (source,), (output,) = call.inputs, call.outputs
    middle = output[_inside(call.integers("before"), source.shape, source.ndim)]
    value = call.number("value", 0.0)

    def run() -> None:
        output.fill(value)
        np.copyto(middle, source)

    return run


def bind_transpose(call: Call) -> Bound:
    """Copy with the axes in another order."""
    (source,), (output,) = call.inputs, call.outputs
    axes = call.integers("axes")
    batch_axes = source.ndim - len(axes)
    view = source.transpose(*range(batch_axes), *(axis + batch_axes for axis in axes))
    return _copies((output,), (view,))


def bind_reorder(call: Call) -> Bound:
    """Copy; the two views differ in their strides alone."""
    return _copies(call.outputs, call.inputs)


def _inside(start: tuple[int, ...], shape: tuple[int, ...], axes: int) -> tuple[slice, ...]:
    """Return the slices of a part; a batch axis, which `start` does not count, is taken whole."""
    firsts = (*(0 for _ in range(axes - len(start))), *start)
    return tuple(slice(first, first + length) for first, length in zip(firsts, shape, strict=True))


def _parts(whole: Array, parts: Sequence[Array]) -> list[Array]:
    """Return the views of a whole where its parts lie; they are shorter along one axis only."""
    axis = next((at for at in range(whole.ndim) if whole.shape[at] != parts[0].shape[at]), 0)
    views, first = [], 0
    for part in parts:
        views.append(whole[(*(slice(None) for _ in range(axis)), slice(first, first + part.shape[axis]))])
        first += part.shape[axis]
    return views


def _copies(targets: Sequence[Array], sources: Sequence[Array]) -> Bound:
    pairs = list(zip(targets, sources, strict=True))

    def run() -> None:
        for target, source in pairs:
            np.copyto(target, source)

    return run


KERNELS = {
    "concat": bind_concat,
    "split": bind_split,
    "slice": bind_slice,
    "pad": bind_pad,
    "transpose": bind_transpose,
    "reorder": bind_reorder,
}
