"""Kernels of bilinear interpolation: a matrix from the left for the rows and one from the right for the columns."""

from dataclasses import dataclass

import numpy as np

from hedgerow_agent.core.kernels.call import Array, Bound, Call, RowNumbers, ScratchCutter
from hedgerow_plans.graph.tiles import CONVOLUTION_TILE_ELEMENTS, images_per_tile


@dataclass(frozen=True, slots=True)
class _Weights:
    """The matrix (new, old) of one axis: the two old pixels of each new one, and the second one's share."""

    matrix: Array
    lower: RowNumbers
    upper: RowNumbers
    share: Array

    def write(self) -> None:
        """Fill the matrix, whose bytes other nodes use in between."""
        new = np.arange(len(self.lower))
        self.matrix.fill(0)
        self.matrix[new, self.lower] = 1 - self.share
        self.matrix[new, self.upper] += self.share


def _weights(matrix: Array, corners: str) -> _Weights:
    new, old = matrix.shape
    if corners == "aligned":
        places = np.arange(new) * ((old - 1) / max(new - 1, 1))
    else:
        places = np.clip((np.arange(new) + 0.5) * (old / new) - 0.5, 0, old - 1)
    lower = np.minimum(places.astype(np.intp), old - 1)
    return _Weights(matrix, lower, np.minimum(lower + 1, old - 1), (places - lower).astype(matrix.dtype))


@dataclass(frozen=True, slots=True)
class _Plan:
    """Both matrices, and a tile of images that have old rows and new columns."""

    rows: _Weights
    columns: _Weights
    half_done: Array

    def write(self) -> None:
        self.rows.write()
        self.columns.write()


def _plan(call: Call, old: Array, new: Array) -> _Plan:
    scratch, corners = ScratchCutter(call), str(call.node.attributes.get("corners", "halved"))
    rows = scratch.take((new.shape[2], old.shape[2]), old.dtype)
    columns = scratch.take((new.shape[3], old.shape[3]), old.dtype)
    shape = (old.shape[1], old.shape[2], new.shape[3])
    tile = images_per_tile(len(old), shape[0] * shape[1] * shape[2], CONVOLUTION_TILE_ELEMENTS)
    return _Plan(_weights(rows, corners), _weights(columns, corners), scratch.take((tile, *shape), old.dtype))


def bind_upsample_bilinear(call: Call) -> Bound:
    """Return the image at another size."""
    (source,), (output,) = call.inputs, call.outputs
    plan = _plan(call, source, output)
    tile = len(plan.half_done)

    def run() -> None:
        plan.write()
        for first in range(0, len(source), tile):
            images = slice(first, first + tile)
            np.matmul(source[images], plan.columns.matrix.T, out=plan.half_done)
            np.matmul(plan.rows.matrix, plan.half_done, out=output[images])

    return run


def bind_upsample_bilinear_grad(call: Call) -> Bound:
    """Hand each new pixel's gradient to the old ones in their shares."""
    (gradient,), (output,) = call.inputs, call.outputs
    plan = _plan(call, output, gradient)
    tile = len(plan.half_done)

    def run() -> None:
        plan.write()
        for first in range(0, len(output), tile):
            images = slice(first, first + tile)
            np.matmul(plan.rows.matrix.T, gradient[images], out=plan.half_done)
            np.matmul(plan.half_done, plan.columns.matrix, out=output[images])

    return run


KERNELS = {"upsample_bilinear": bind_upsample_bilinear, "upsample_bilinear_grad": bind_upsample_bilinear_grad}
