"""Changing samples a little every time they are seen, so that a few teach more.

A hook gets one sample where it lies in the arena, and a 64-bit word that seed, step and sample decide: the same sample
of the same step is changed alike on every rung, in every micro-batch, when it is read again, and after a restart.
Samples are only changed in training, never when a model is judged.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.kernels.call import Array, Augment
from hedgerow_agent.core.random_bits import mixed, normal
from hedgerow_agent.core.samples import SampleShape


def shift(most: int) -> Augment:
    """Move images by up to so many pixels in each direction; what comes in is empty."""

    def change(sample: Array, word: int) -> None:
        for axis, steps in ((-2, word % (2 * most + 1) - most), (-1, (word >> 32) % (2 * most + 1) - most)):
            _move(sample, axis, steps)

    return change


def flip() -> Augment:
    """Mirror every other image from left to right."""

    def change(sample: Array, word: int) -> None:
        if word % 2:
            sample[...] = sample[..., ::-1].copy()

    return change


def noise(deviation: float) -> Augment:
    """Add Gaussian noise."""

    def change(sample: Array, word: int) -> None:
        sample += np.float32(deviation) * normal(sample.size, word).reshape(sample.shape)

    return change


def together(hooks: Sequence[Augment]) -> Augment | None:
    """Return one hook that applies several in order, each with chance of its own; None for none."""
    if not hooks:
        return None

    def change(sample: Array, word: int) -> None:
        for number, hook in enumerate(hooks):
            hook(sample, mixed(word, number))

    return change


def parse(words: Sequence[str], samples: SampleShape) -> Augment | None:
    """Return the hook that words such as "shift:2", "flip" and "noise:0.1" ask for, if such samples allow it."""
    return together([_hook(word, samples) for word in words])


def _hook(word: str, samples: SampleShape) -> Augment:
    name, _, setting = word.partition(":")
    if name not in _HOOKS:
        raise BadInput(f"There is no augmentation {word!r}; known are shift:PIXELS, flip and noise:DEVIATION.")
    dimensions, make = _HOOKS[name]
    if not samples.dtype.startswith("float") or len(samples.shape) < dimensions:
        raise BadInput(
            f"The augmentation {word!r} is for {'images' if dimensions else 'samples of numbers'}, and this model "
            f"takes {samples.dtype} {list(samples.shape)}; leave it out."
        )
    try:
        return make(setting, samples)
    except ValueError as error:
        raise BadInput(f"The augmentation {word!r} cannot be used: {error}.") from None


def _shift(setting: str, samples: SampleShape) -> Augment:
    most, side = _number(setting or "1", "shift:1"), min(samples.shape[-2:])
    if most not in range(1, side):
        raise ValueError(f"name a whole number from 1 on, below the {side} pixels of a side of {list(samples.shape)}")
    return shift(int(most))


def _flip(setting: str, _samples: SampleShape) -> Augment:
    if setting:
        raise ValueError("flip takes no number; leave it out")
    return flip()


def _noise(setting: str, _samples: SampleShape) -> Augment:
    deviation = _number(setting or "0.05", "noise:0.1")
    if not 0 < deviation <= _MOST_NOISE:
        raise ValueError(f"name a deviation above 0 and up to {_MOST_NOISE:g}")
    return noise(deviation)


def _number(text: str, example: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"it needs a number after the colon, such as {example}") from None


_MOST_NOISE = 1e6
"""Far above any sample, and far below what a float32 holds."""

_HOOKS: Mapping[str, tuple[int, Callable[[str, SampleShape], Augment]]] = {
    "shift": (2, _shift),
    "flip": (2, _flip),
    "noise": (0, _noise),
}
"""The dimensions that samples need at least, and what makes the hook of the text after the colon."""


def _move(sample: Array, axis: int, steps: int) -> None:
    """Move a sample along an axis in place; what leaves is lost."""
    length = sample.shape[axis]
    steps = max(-length, min(length, steps))
    lines = np.moveaxis(sample, axis, 0)
    if steps > 0:
        lines[steps:] = lines[: length - steps].copy()
        lines[:steps] = 0
    elif steps < 0:
        lines[:steps] = lines[-steps:].copy()
        lines[steps:] = 0
