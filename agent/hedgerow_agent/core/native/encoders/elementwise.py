"""What is done number by number: tensors may lie in any order, if it is the same one."""

from hedgerow_agent.core.kernels.call import Array, Call
from hedgerow_agent.core.native.draft import Block, Draft


def elements(op: str, *operands: Array | None, numbers: tuple[float, ...] = (), size: int | None = None) -> Draft:
    """Return a kernel over all elements of its first operand."""
    first = operands[0]
    count = size if first is None or size is not None else first.size
    if count is None:
        raise ValueError(f"The kernel {op} has no first operand; say how many elements it works on.")
    return Draft(op, operands, (count,), units=count, work=count * len(operands), numbers=numbers, grain=64)


def _relu(call: Call, _block: Block) -> Draft | None:
    return elements("relu", *call.inputs, call.outputs[0]) if len(call.outputs) == 1 else None


def _relu_grad_from_result(call: Call, _block: Block) -> Draft:
    return elements("relu_grad_from_result", *call.inputs, *call.outputs)


def _sgd(call: Call, block: Block) -> Draft | None:
    if len(call.inputs) > 1 or call.number("clip", 0.0):
        return None
    parameter, *velocity = call.updates
    numbers = (call.number("momentum", 0.0), call.number("weight_decay", 0.0))
    return elements("sgd", call.inputs[0], parameter, block.rate, *velocity, numbers=numbers)


ENCODERS = {"relu": _relu, "relu_grad_from_result": _relu_grad_from_result, "sgd": _sgd}
