"""How many of BLAS's threads a kernel's matrix products are worth, where the process has more than one.

Threads meet within every product. That pays in large ones; in small ones the meetings last as long as what they save,
and much longer when somebody else wants a processor. What a kernel gets depends on the program alone, not on the clock,
so that the same program gives the same bits.
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial

from hedgerow_agent.core.blas import Blas
from hedgerow_agent.core.kernels.call import Bound, Call
from hedgerow_plans.graph.ir import Order
from hedgerow_plans.graph.ops.convolution_ways import Way
from hedgerow_plans.graph.tiles import CONVOLUTION_TILE_ELEMENTS, SMALL_WEIGHT_ELEMENTS, UNFOLDED_TILE_ELEMENTS

LEAST_FLOPS = 12_000_000
"""Of a product that is worth two threads: a quarter of a millisecond of one, with 50 billion of them a second."""

LEAST_FLOPS_OF_A_TAP = 8_000_000
"""Of the product of one position of a window, which reads weights by the hundred thousand and images where they lie."""

LEAST_FLOPS_IN_A_ROW = 45_000_000
"""Of any other product of a convolution: the other processor first fetches images, or patches just made of them."""

_ONE_PRODUCT = {"linear", "linear_grad_input", "linear_grad_weight", "sgd_linear"}
_FILTERS = {"conv2d": 0, "conv2d_grad_input": 1, "conv2d_grad_weight": 0, "sgd_conv2d": 0}
"""Which side of its weight a convolution multiplies patches with."""

_MAKE_WEIGHTS = {"conv2d_grad_weight", "sgd_conv2d"}

_PART_OF_WINOGRAD = Fraction(4, 9)
"""Of the flops of a convolution, what goes into Winograd's sixteen products; they save some, and are one call."""


def with_threads(steps: Sequence[Call | Bound], bound: Sequence[Bound], blas: Blas, most: int) -> Iterator[Bound]:
    """Yield bound calls and, where the number of threads has to change, calls that change it; it ends as it began."""
    current = most
    for step, call in zip(steps, bound, strict=True):
        wanted = current
        if isinstance(step, Call):
            wanted = most if product_flops(step) >= _least(step) else 1
        if wanted != current:
            current = wanted
            yield partial(blas.use_threads, wanted)
        yield call
    if current != most:
        yield partial(blas.use_threads, most)


def _least(call: Call) -> int:
    if call.node.op in _ONE_PRODUCT:
        return LEAST_FLOPS
    return LEAST_FLOPS_OF_A_TAP if _way(call) is Way.TAPS else LEAST_FLOPS_IN_A_ROW


def _way(call: Call) -> Way:
    return Way(str(call.node.attributes.get("algorithm", Way.UNFOLD.value)))


def product_flops(call: Call) -> int:
    """Return the size of each large product a kernel makes; 0 if it makes none, or many small ones."""
    if call.node.op in _ONE_PRODUCT:
        return call.flops
    return _of_convolution(call) if call.node.op in _FILTERS else 0


def _of_convolution(call: Call) -> int:
    way, op = _way(call), call.node.op
    weight = (*call.updates, *call.outputs)[0] if op in _MAKE_WEIGHTS else call.inputs[1]
    if way is Way.WINOGRAD:
        return int(call.flops * _PART_OF_WINOGRAD)
    if way is Way.TAPS:
        return call.flops // int(math.prod(weight.shape[2:]))
    if way is not Way.UNFOLD or call.integer("groups", 1) != 1:
        return 0
    if weight.shape[2:] == (1, 1):
        return call.flops
    if op in _MAKE_WEIGHTS and weight.size <= SMALL_WEIGHT_ELEMENTS:
        return 0
    tile = CONVOLUTION_TILE_ELEMENTS if call.order is Order.SAMPLES else UNFOLDED_TILE_ELEMENTS
    return min(call.flops, 2 * tile * int(weight.shape[_FILTERS[op]]))
