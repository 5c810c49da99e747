"""The fully connected layer and sums over rows."""

from hedgerow_agent.core.kernels.call import Array, Call
from hedgerow_agent.core.native.draft import Block, Draft
from hedgerow_plans.graph.ir import Order

_GRAIN_ROWS = 6
_GRAIN_COLUMNS = 16


def product(
    a: Array, b: Array, c: Array, sizes: tuple[int, int, int], turned: tuple[bool, bool], row: Array | None = None
) -> Draft:
    """Return C = A B (+ a row), cut by whichever of its sides is longer."""
    m, n, k = sizes
    by_columns = n >= m
    return Draft(
        "product",
        (a, b, c, row),
        (m, n, k, *map(int, turned), int(by_columns)),
        units=n if by_columns else m,
        work=m * n * k // 8,
        grain=_GRAIN_COLUMNS if by_columns else _GRAIN_ROWS,
    )


def _linear(call: Call, _block: Block) -> Draft:
    x, weight, *bias = call.inputs
    outputs, inputs = weight.shape
    sizes = (x.size // inputs, outputs, inputs)
    return product(x, weight, call.outputs[0], sizes, (False, True), bias[0] if bias else None)


def _linear_grad_input(call: Call, _block: Block) -> Draft:
    gradient, weight = call.inputs
    outputs, inputs = weight.shape
    return product(gradient, weight, call.outputs[0], (gradient.size // outputs, inputs, outputs), (False, False))


def _linear_grad_weight(call: Call, _block: Block) -> Draft:
    gradient, x = call.inputs
    outputs, inputs = call.outputs[0].shape
    return product(gradient, x, call.outputs[0], (outputs, inputs, x.size // inputs), (True, False))


def column_sums(matrix: Array, sums: Array) -> Draft:
    """Return the sums of the columns of a matrix."""
    rows, columns = matrix.size // sums.size, sums.size
    return Draft("column_sums", (matrix, sums), (rows, columns), units=columns, work=matrix.size, grain=16)


def _bias_grad(call: Call, _block: Block) -> Draft | None:
    (gradient,), (output,) = call.inputs, call.outputs
    first = call.node.attributes.get("channels", "first") == "first"
    last_axis = gradient.ndim == 2 or not first or call.order is Order.PIXELS
    return column_sums(gradient, output) if last_axis else None


ENCODERS = {
    "linear": _linear,
    "linear_grad_input": _linear_grad_input,
    "linear_grad_weight": _linear_grad_weight,
    "bias_grad": _bias_grad,
}
