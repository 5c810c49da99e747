"""The kernel of products of two computed matrices."""

import numpy as np

from hedgerow_agent.core.kernels.call import Array, Bound, Call


def bind_matmul(call: Call) -> Bound:
    """Return the product of each pair of matrices; a transposed one is a view."""
    first = _turned(call, call.inputs[0], "transpose_first")
    second = _turned(call, call.inputs[1], "transpose_second")
    (output,) = call.outputs
    return lambda: np.matmul(first, second, out=output)


def _turned(call: Call, matrices: Array, flag: str) -> Array:
    return matrices.swapaxes(-1, -2) if call.node.attributes.get(flag, False) is True else matrices


KERNELS = {"matmul": bind_matmul}
