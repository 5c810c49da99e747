"""Kernels that move or combine whole tensors: input, reshape, add, mul, scale."""

import numpy as np

from hedgerow_agent.core.kernels.call import Array, Bound, Call, RowNumbers, row_numbers
from hedgerow_agent.core.random_bits import mixed


def bind_input(call: Call) -> Bound:
    """Copy this micro-batch's samples into the arena; rows beyond the last sample become zero."""
    (output,) = call.outputs
    name = str(call.node.attributes["field"])
    runtime = call.runtime

    def run() -> None:
        source, rows = runtime.fields[name], runtime.rows
        if isinstance(rows, slice):
            chosen = range(*rows.indices(len(source)))
            count = len(chosen)
            _copy(source, chosen, output[:count])
        else:
            count = len(rows)
            _gather(source, rows, output[:count])
        output[count:] = 0
        if runtime.augment is not None and name == "x":
            for sample, row in zip(output, row_numbers(rows), strict=False):
                runtime.augment(sample, mixed(runtime.seed, runtime.step, row))

    return run


def _copy(source: Array, rows: range, output: Array) -> None:
    if output.flags.c_contiguous:
        np.copyto(output, source[rows.start : rows.stop])
    else:  # in another order a sample's numbers lie far apart: all at once, numpy would read as far apart as it writes
        _one_by_one(source, rows, output)


def _gather(source: Array, rows: RowNumbers, output: Array) -> None:
    if source.ndim == 1:  # labels, of any whole type
        output[...] = source[rows]
        return
    if source.flags.aligned and source.flags.c_contiguous and output.flags.c_contiguous:
        # Any mode but "raise" lets numpy write straight into `out`; the rows were checked when they were chosen.
        np.take(source, rows, axis=0, out=output, mode="clip")
        return
    # An array inside an npz file lies at an odd address, and `take` would copy all of it first; it would copy the
    # result as well, if that lies in another order.
    _one_by_one(source, rows, output)


def _one_by_one(source: Array, rows: range | RowNumbers, output: Array) -> None:
    for position, row in enumerate(rows):
        output[position] = source[row]


def bind_reshape(call: Call) -> Bound:
    """Copy; the planner places both sides, so they are never the same bytes."""
    (source,), (output,) = call.inputs, call.outputs
    target = output.reshape(source.shape)
    return lambda: np.copyto(target, source)


def bind_add(call: Call) -> Bound:
    """Return a + scale * b."""
    (first, second), (output,) = call.inputs, call.outputs
    factor = call.number("scale", 1.0)
    if factor == 1.0:
        return lambda: np.add(first, second, out=output)

    def run() -> None:
        np.multiply(second, factor, out=output)
        np.add(first, output, out=output)

    return run


def bind_mul(call: Call) -> Bound:
    """Return a * b."""
    (first, second), (output,) = call.inputs, call.outputs
    return lambda: np.multiply(first, second, out=output)


def bind_scale(call: Call) -> Bound:
    """Return scale * x."""
    (source,), (output,) = call.inputs, call.outputs
    factor = call.number("scale", 1.0)
    return lambda: np.multiply(source, factor, out=output)


KERNELS = {"input": bind_input, "reshape": bind_reshape, "add": bind_add, "mul": bind_mul, "scale": bind_scale}
