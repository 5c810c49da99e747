"""Images at another size."""

from hedgerow_agent.core.kernels.call import Array, Call
from hedgerow_agent.core.native.draft import Block, Draft, Drafts


def _sizes(call: Call, old: Array, new: Array) -> tuple[int, ...]:
    aligned = call.node.attributes.get("corners", "halved") == "aligned"
    return (old.shape[0] * old.shape[1], *old.shape[2:], *new.shape[2:], int(aligned))


def _upsample(call: Call, _block: Block) -> Drafts:
    (source,), (output,) = call.inputs, call.outputs
    sizes = _sizes(call, source, output)
    return (Draft("resample", (source, output), sizes, sizes[0] * output.shape[2], 8 * output.size),)


def _upsample_grad(call: Call, _block: Block) -> Drafts:
    (gradient,), (output,) = call.inputs, call.outputs
    sizes = _sizes(call, output, gradient)
    return (Draft("resample_grad", (gradient, output), sizes, sizes[0], 8 * gradient.size),)


ENCODERS = {"upsample_bilinear": _upsample, "upsample_bilinear_grad": _upsample_grad}
