"""What chance decides: elements that are dropped, and the direction of training without a backward pass."""

from hedgerow_agent.core.kernels.call import Call
from hedgerow_agent.core.native.draft import Block, Draft, Drafts

_WORD = 2**32
_GRAIN = 64


def _dropout(call: Call, block: Block) -> Drafts:
    (x,), (output,), rate = call.inputs, call.outputs, call.number("rate", 0.0)
    sizes = (len(x), x.size // len(x), call.integer("seed", 0), int(rate * _WORD))
    operands, numbers = (x, output, block.now, block.samples(len(x))), (1 / (1 - rate),)
    return (Draft("dropout", operands, sizes, x.size, 4 * x.size, numbers, grain=_GRAIN),)


def _perturbed(call: Call, block: Block) -> Drafts:
    (source,), (output,) = call.inputs, call.outputs
    sizes, numbers = (source.size, call.integer("key", 0)), (call.number("distance", 0.0),)
    operands = (source, output, block.now)
    return (Draft("perturbed", operands, sizes, source.size, 4 * source.size, numbers, grain=_GRAIN),)


def _descend(call: Call, block: Block) -> Drafts:
    (slope,), (parameter,) = call.inputs, call.updates
    sizes, numbers = (parameter.size, call.integer("key", 0)), (call.number("weight_decay", 0.0),)
    operands = (slope, parameter, block.rate, block.now)
    return (Draft("descend", operands, sizes, parameter.size, 4 * parameter.size, numbers, grain=_GRAIN),)


def _accumulate_slope(call: Call, _block: Block) -> Drafts:
    factor = 1 / (2 * call.number("distance", 1.0) * call.integer("batch_size", 1))
    samples, operands = call.inputs[0].size, (*call.inputs, *call.updates)
    return (Draft("accumulate_slope", operands, (1, samples), units=1, work=2 * samples, numbers=(factor,)),)


ENCODERS = {
    "dropout": _dropout,
    "perturbed": _perturbed,
    "descend": _descend,
    "accumulate_slope": _accumulate_slope,
}
