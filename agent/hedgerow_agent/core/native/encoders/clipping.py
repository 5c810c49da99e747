"""The norm of all gradients, and the factor that follows from it."""

from hedgerow_agent.core.kernels.call import Call
from hedgerow_agent.core.native.draft import MOST_SUMS, Block, Draft, Drafts


def _sum_squares(call: Call, block: Block) -> Drafts:
    """Return sums that are taken apart the same way however many threads there are, so that their bits stay."""
    (gradient, *before), (total,) = call.inputs, call.outputs
    apart = Draft("strand_squares", (gradient, block.sums), (gradient.size, MOST_SUMS), MOST_SUMS, gradient.size)
    joined = (block.sums, before[0] if before else None, total)
    return apart, Draft("join_squares", joined, (1, MOST_SUMS), units=1, work=MOST_SUMS)


def _clip_factor(call: Call, _block: Block) -> Drafts:
    numbers = (call.number("limit", 1.0),)
    return (Draft("clip_factor", (*call.inputs, *call.outputs), (1,), units=1, work=1, numbers=numbers),)


ENCODERS = {"sum_squares": _sum_squares, "clip_factor": _clip_factor}
