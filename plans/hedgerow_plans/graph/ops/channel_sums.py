"""Sums over samples and pixels of images that lie by pixels or by channels: products with a vector of ones.

By pixels, an image batch is a matrix whose rows repeat the channels many times: a row is as many pixels as make it
about `ROW_ELEMENTS` long, so that what is done with one number a channel is done in long runs.
"""

from dataclasses import dataclass

from hedgerow_plans.graph.ir import Order, Tensor
from hedgerow_plans.graph.operator import Call
from hedgerow_plans.graph.tiles import ROW_ELEMENTS, ROWS_TILE_ELEMENTS, images_per_tile


@dataclass(frozen=True, slots=True)
class Rows:
    """A batch of images by pixels as a matrix: `count` rows of `repeats` times `channels` elements."""

    count: int
    repeats: int
    channels: int

    @property
    def length(self) -> int:
        """Elements of a row."""
        return self.repeats * self.channels

    @property
    def per_tile(self) -> int:
        """Rows that are worked on at once."""
        return max(1, min(self.count, ROWS_TILE_ELEMENTS // self.length))

    @property
    def tile_elements(self) -> int:
        """Elements that are worked on at once."""
        return self.per_tile * self.length


def rows_of(samples: int, channels: int, pixels: int) -> Rows:
    """Return how a batch of images by pixels is cut into rows."""
    joined = images_per_tile(pixels, samples * channels, ROW_ELEMENTS)
    return Rows(pixels // joined, joined * samples, channels)


def rows_of_tensor(call: Call, image: Tensor) -> Rows:
    """Return how a tensor is cut into rows at a call's micro-batch."""
    channels = image.shape[0]
    return rows_of(call.micro_batch, channels, image.elements // channels)


def sums_scratch(call: Call, image: Tensor) -> int:
    """Return the bytes of the ones and, by pixels, of one sum for each element of a row."""
    match image.order:
        case Order.PIXELS:
            rows = rows_of_tensor(call, image)
            return 4 * (rows.count + rows.length)
        case Order.CHANNELS:
            return 4 * call.samples(image) // image.shape[0]
        case _:
            return 0
