"""First values of parameters that no weights file brings, the same on every machine for the same seed and name."""

from collections.abc import Iterator, Mapping

import numpy as np

from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.random_bits import normal_pieces
from hedgerow_plans.graph.ir import Init, Role, Tensor


def initial_value(tensor: Tensor, seed: int) -> Array:
    """Return the first value of a resident tensor."""
    value: Array = np.empty(tensor.shape, tensor.dtype.value)
    write_initial_value(tensor, seed, value)
    return value


def write_initial_value(tensor: Tensor, seed: int, view: Array) -> None:
    """Write the first value of a resident tensor where it lies; a copy of it would stay with the process for good."""
    init = tensor.init or (Init() if tensor.role is Role.STATE else None)
    if init is None:
        raise BadInput(f"The weights bring no {tensor.name} and the model has no rule for it; use the model's weights.")
    match init.kind:
        case "zeros":
            view.fill(0)
        case "ones":
            view.fill(1)
        case "normal":
            for first, piece in normal_pieces(tensor.elements, seed, tensor.name):
                view.flat[first : first + piece.size] = piece * np.float32(init.scale)
        case _:
            raise BadInput(
                f"{tensor.name} starts as {init.kind!r}; this agent knows zeros, ones and normal. Update it."
            )


def kept_value(tensor: Tensor, init: Init, parameters: Mapping[str, Array]) -> Array:
    """Return the part of another parameter that belongs to the strongest filters: the largest sums of magnitudes."""
    source, ranking = parameters.get(init.source), parameters.get(init.ranking)
    if source is None or ranking is None:
        raise BadInput(
            f"{tensor.name} is part of {init.source}, and the weights do not bring that; use the model's weights."
        )
    filters, axis = len(ranking), init.axis
    length = source.shape[axis] if source.ndim == len(tensor.shape) else 0
    each, rest = divmod(length, filters)
    kept, more = divmod(tensor.shape[axis], max(each, 1))
    if rest or more or not 0 < kept <= filters:
        raise BadInput(
            f"{tensor.name} keeps {tensor.shape[axis]} of {length} along axis {axis}, for the {filters} filters of "
            f"{init.ranking}; these are not this model's weights."
        )
    strengths = np.abs(ranking).reshape(filters, -1).sum(axis=1, dtype=np.float64)
    strongest = np.sort(np.argsort(-strengths, kind="stable")[:kept])
    places = (strongest[:, np.newaxis] * each + np.arange(each)).reshape(-1)
    return checked(tensor, np.take(source, places, axis=axis))


_PIECE = 65_536
"""Elements looked at at once: a mapped file of weights must not be mirrored in memory."""


def _pieces(value: Array) -> Iterator[Array]:
    flat = value.reshape(-1)
    return (flat[first : first + _PIECE] for first in range(0, flat.size, _PIECE))


def all_finite(value: Array) -> bool:
    """Whether a tensor is free of NaN and infinity; it is looked at piece by piece."""
    return value.dtype.kind != "f" or all(bool(np.isfinite(piece).all()) for piece in _pieces(value))


def checked(tensor: Tensor, value: Array) -> Array:
    """Return a given value if it fits the tensor: type, shape, no NaN or infinity."""
    if value.dtype != np.dtype(tensor.dtype.value) or value.shape != tensor.shape:
        raise BadInput(
            f"{tensor.name} is {value.dtype} {list(value.shape)} and the program wants {tensor.dtype.value} "
            f"{list(tensor.shape)}; these are not this model's weights."
        )
    if not all_finite(value):
        raise BadInput(f"{tensor.name} holds NaN or infinity; fetch the weights again.")
    return value
