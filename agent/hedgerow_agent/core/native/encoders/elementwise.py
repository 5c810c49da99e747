"""What is done number by number: tensors may lie in any order, if it is the same one."""

import math

from hedgerow_agent.core.kernels.call import Array, Call
from hedgerow_agent.core.native.draft import Block, Draft, Drafts, Encoder
from hedgerow_plans.graph.ir import Order

_GRAIN = 64


def elements(op: str, *operands: Array | None, count: int, numbers: tuple[float, ...] = ()) -> Draft:
    """Return a kernel over so many elements."""
    return Draft(op, operands, (count,), units=count, work=count * len(operands), numbers=numbers, grain=_GRAIN)


def _plain(op: str) -> Encoder:
    """Return the encoder of a kernel that takes inputs and outputs as they are."""
    return lambda call, _block: (elements(op, *call.inputs, *call.outputs, count=call.inputs[0].size),)


def _rectifier(op: str, limit: float) -> Encoder:
    def encode(call: Call, _block: Block) -> Drafts:
        if len(call.outputs) == 1:
            return (elements(op, *call.inputs, *call.outputs, count=call.inputs[0].size),)
        sizes = mask_sizes(call.inputs[0], call.outputs[1], call.order)
        operands = (*call.inputs, *call.outputs)
        return (Draft("rectify", operands, sizes, sizes[0] * sizes[2], 2 * call.inputs[0].size, (limit,), grain=16),)

    return encode


def mask_sizes(values: Array, mask: Array, order: Order) -> tuple[int, int, int]:
    """Return rows, elements of a row and bytes of its mask: samples, or everything as it lies."""
    if order is not Order.SAMPLES:
        return 1, values.size, mask.size
    return len(values), values.size // len(values), mask.size // len(values)


def _relu_grad(call: Call, _block: Block) -> Drafts:
    gradient, mask = call.inputs
    sizes = mask_sizes(gradient, mask, call.order)
    operands = (gradient, mask, *call.outputs)
    return (Draft("let_through", operands, sizes, sizes[0] * sizes[2], 2 * gradient.size, grain=16),)


def _add(call: Call, _block: Block) -> Drafts:
    numbers = (call.number("scale", 1.0),)
    return (elements("add", *call.inputs, *call.outputs, count=call.outputs[0].size, numbers=numbers),)


def _scale(call: Call, _block: Block) -> Drafts:
    numbers = (call.number("scale", 1.0),)
    return (elements("scale", *call.inputs, *call.outputs, count=call.outputs[0].size, numbers=numbers),)


def _gelu(call: Call, _block: Block) -> Drafts:
    draft = elements("gelu", *call.inputs, *call.outputs, count=call.inputs[0].size)
    return (draft,)


def add_repeated(x: Array, added: Array, output: Array) -> Draft:
    """Return x with something added to each of its pieces of the same size."""
    sizes = (x.size // added.size, added.size)
    return Draft("add_repeated", (x, added, output), sizes, sizes[0], 2 * x.size)


def _add_parameter(call: Call, _block: Block) -> Drafts:
    return (add_repeated(*call.inputs, *call.outputs),)


def _zero(call: Call, _block: Block) -> Drafts:
    return (elements("zero", *call.outputs, count=call.outputs[0].size),)


def _accumulate(call: Call, _block: Block) -> Drafts:
    return (elements("accumulate", *call.inputs, *call.updates, count=call.inputs[0].size),)


ENCODERS: dict[str, Encoder] = {
    "relu": _rectifier("relu", math.inf),
    "relu6": _rectifier("relu6", 6.0),
    "relu_grad": _relu_grad,
    "relu_grad_from_result": _plain("relu_grad_from_result"),
    "relu6_grad_from_result": _plain("relu6_grad_from_result"),
    "reshape": _plain("copy_floats"),
    "mul": _plain("mul"),
    "sigmoid": _plain("sigmoid"),
    "sigmoid_grad": _plain("sigmoid_grad"),
    "tanh": _plain("tanh"),
    "tanh_grad": _plain("tanh_grad"),
    "silu": _plain("silu"),
    "silu_grad": _plain("silu_grad"),
    "hswish": _plain("hswish"),
    "hswish_grad": _plain("hswish_grad"),
    "add": _add,
    "scale": _scale,
    "gelu": _gelu,
    "add_parameter": _add_parameter,
    "zero": _zero,
    "accumulate": _accumulate,
}
