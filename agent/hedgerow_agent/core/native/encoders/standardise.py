"""Features standardised with the statistics of everything seen so far."""

import numpy as np

from hedgerow_agent.core.kernels.call import Array, Call
from hedgerow_agent.core.native.draft import Block, Draft, Drafts
from hedgerow_agent.core.native.encoders.elementwise import elements


def _draft(call: Call, x: Array, mean: Array | None, variance: Array) -> Drafts:
    numbers = (call.number("epsilon", 1e-5),)
    return (Draft("standardise", (x, mean, variance, *call.outputs), x.shape, len(x), 2 * x.size, numbers),)


def _standardise(call: Call, _block: Block) -> Drafts:
    x, mean, variance, _count = call.inputs
    return _draft(call, x, mean, variance)


def _standardise_grad(call: Call, _block: Block) -> Drafts:
    gradient, variance = call.inputs
    return _draft(call, gradient, None, variance)


def _update(call: Call, _block: Block) -> Drafts:
    (x,), (mean, variance, count) = call.inputs, call.updates
    taken = Draft("take_in", (x, mean, variance, count), x.shape, mean.size, 6 * x.size, grain=16)
    return taken, elements("accumulate", np.array([len(x)], np.float32), count, count=1)


ENCODERS = {
    "standardise": _standardise,
    "standardise_grad": _standardise_grad,
    "update_standardisation": _update,
}
