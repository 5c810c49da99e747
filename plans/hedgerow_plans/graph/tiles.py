"""How much of a micro-batch a kernel works on at once.

Kernels that need scratch work in tiles, so that scratch stays bounded while the micro-batch grows. The planner counts
the scratch and the device uses it, so both ask here: a tile of another size would break the promise of a plan.
"""

CONVOLUTION_TILE_ELEMENTS = 16_384
"""Floats of unfolded patches at a time, 64 KiB: smaller tiles cost time in calls, larger ones raise every peak."""

BYTE_TILE_ELEMENTS = 65_536
"""Elements at a time whose truth values are kept as bytes; a multiple of eight, so that packed bits split evenly."""

UPDATE_TILE_ELEMENTS = 16_384
"""Parameters at a time in an optimiser's update; a multiple of the block below."""

STATE_BLOCK_ELEMENTS = 256
"""Elements of optimiser state that share a scale when they are kept in eight bits: 1.6 % more bytes for scales."""

NORM_TILE_ELEMENTS = 16_384
"""Floats of centred values at a time in a norm's gradients; a row that is longer is a tile of its own."""

ROW_TILE_ELEMENTS = 32_768
"""Floats at a time in the gradients of norms over rows; a row that is longer is a tile of its own."""

ACTIVATION_TILE_ELEMENTS = 16_384
"""Elements at a time of an activation that needs more than its result to work with."""

GELU_TILE_ELEMENTS = 32_768
"""Elements at a time of gelu, 128 KiB of scratch: its twenty passes over smaller tiles would be half calls."""

ATTENTION_TILE_ELEMENTS = 65_536
"""Scores at a time in attention: all heads of some samples, or some heads of one; a head is never cut."""

ROW_ELEMENTS = 2_048
"""Elements of images by pixels that make a row: long enough for a fast loop, short enough to stay near."""

ROWS_TILE_ELEMENTS = 32_768
"""Elements of images by pixels at a time, 128 KiB: two or three of such tiles stay in a second-level cache."""

UNFOLDED_TILE_ELEMENTS = 327_680
"""Floats of unfolded patches at a time where memory is plenty, 1.25 MiB: fewer and longer products than with less."""

SMALL_WEIGHT_ELEMENTS = 1024
"""Largest weight whose gradient is added up from a product for each row of the result.

BLAS rearranges the factors of a long product, which for so few results takes longer than to multiply them. Those of a
short one it takes as they lie.
"""


def images_per_tile(micro_batch: int, elements_per_image: int, tile_elements: int) -> int:
    """Return how many images make one tile: the largest divisor of the micro-batch that fits, at least one."""
    most = max(1, min(micro_batch, tile_elements // max(1, elements_per_image)))
    return next(count for count in range(most, 0, -1) if micro_batch % count == 0)


def tile_of(elements: int, tile_elements: int) -> int:
    """Return how many elements of a flat array make one tile; the last tile may be shorter."""
    return min(elements, tile_elements)


def rows_per_tile(rows: int, width: int, tile_elements: int) -> int:
    """Return how many rows make one tile, at least one; the last tile may have fewer."""
    return max(1, min(rows, tile_elements // max(1, width)))


def channels_per_tile(groups: int, channels_per_group: int, pixels: int, tile_elements: int) -> tuple[int, int]:
    """Return how many groups, and how many channels of each, of one image make a tile: whole groups if they fit."""
    group = channels_per_group * pixels
    if group <= tile_elements:
        return images_per_tile(groups, group, tile_elements), channels_per_group
    return 1, images_per_tile(channels_per_group, pixels, tile_elements)


def pooled_rows(rows: int, elements: int) -> int:
    """Return how many rows of pooled images are compared at once, of images that do not lie sample by sample."""
    return max(1, min(rows, BYTE_TILE_ELEMENTS * rows // elements))
