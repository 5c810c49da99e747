"""Copies between views: the shorter of the two says how far, strides say from where to where."""

from collections.abc import Sequence

from hedgerow_agent.core.kernels.call import Array, Call
from hedgerow_agent.core.native.draft import Block, Draft, Drafts
from hedgerow_agent.core.native.encoders.elementwise import elements

_AXES = 5


def copy(source: Array, target: Array, factor: float = 1.0) -> Draft | None:
    """Return the copy of a view into another one of the same shape; either may repeat or skip elements."""
    if source.shape != target.shape:
        raise ValueError(f"A copy from {source.shape} to {target.shape} was asked for; give it one shape.")
    order = sorted(range(target.ndim), key=lambda axis: -target.strides[axis])
    axes = [axis for axis in order if target.shape[axis] > 1]
    if len(axes) > _AXES or min((*source.strides, *target.strides), default=0) < 0:
        return None
    fill = _AXES - len(axes)
    lengths = [1] * fill + [target.shape[axis] for axis in axes]
    steps = [[0] * fill + [view.strides[axis] // view.itemsize for axis in axes] for view in (source, target)]
    shift = next((at for at, length in enumerate(lengths) if length > 1), _AXES - 1)
    # the outermost axis that is no single one comes first, because that is where work is cut
    rows = [part[shift : shift + 1] + part[:shift] + part[shift + 1 :] for part in (lengths, *steps)]
    if shift == _AXES - 1:
        rows = [lengths, *steps]
    sizes = (*rows[0], *rows[1], *rows[2], 0, 0)
    return Draft("copy", (source, target), sizes, rows[0][0], 2 * target.size, (factor,))


def copies(sources: Sequence[Array], targets: Sequence[Array]) -> Drafts | None:
    """Return several copies, or None if one cannot be done."""
    drafts = [copy(source, target) for source, target in zip(sources, targets, strict=True)]
    found = tuple(draft for draft in drafts if draft is not None)
    return found if len(found) == len(drafts) else None


def _reorder(call: Call, _block: Block) -> Drafts | None:
    return copies(call.inputs, call.outputs)


def _transpose(call: Call, _block: Block) -> Drafts | None:
    (source,), axes = call.inputs, call.integers("axes")
    batch_axes = source.ndim - len(axes)
    view = source.transpose(*range(batch_axes), *(axis + batch_axes for axis in axes))
    return copies((view,), call.outputs)


def _slice(call: Call, _block: Block) -> Drafts | None:
    (source,), (output,) = call.inputs, call.outputs
    return copies((source[_inside(call.integers("start"), output.shape)],), (output,))


def _pad(call: Call, _block: Block) -> Drafts | None:
    (source,), (output,) = call.inputs, call.outputs
    moved = copies((source,), (output[_inside(call.integers("before"), source.shape)],))
    fill = elements("fill", output, count=output.size, numbers=(call.number("value", 0.0),))
    return None if moved is None else (fill, *moved)


def _inside(start: tuple[int, ...], shape: tuple[int, ...]) -> tuple[slice, ...]:
    firsts = (*(0 for _ in range(len(shape) - len(start))), *start)
    return tuple(slice(first, first + length) for first, length in zip(firsts, shape, strict=True))


def _concat(call: Call, _block: Block) -> Drafts | None:
    return copies(call.inputs, _parts(call.outputs[0], call.inputs))


def _split(call: Call, _block: Block) -> Drafts | None:
    return copies(_parts(call.inputs[0], call.outputs), call.outputs)


def _parts(whole: Array, parts: Sequence[Array]) -> list[Array]:
    axis = next((at for at in range(whole.ndim) if whole.shape[at] != parts[0].shape[at]), 0)
    views, first = [], 0
    for part in parts:
        views.append(whole[(*(slice(None) for _ in range(axis)), slice(first, first + part.shape[axis]))])
        first += part.shape[axis]
    return views


ENCODERS = {
    "reorder": _reorder,
    "transpose": _transpose,
    "slice": _slice,
    "pad": _pad,
    "concat": _concat,
    "split": _split,
}
