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


_HOOKS: Mapping[str, Callable[[str], Augment]] = {
    "shift": lambda text: shift(int(text or "1")),
    "flip": lambda _text: flip(),
    "noise": lambda text: noise(float(text or "0.05")),
}


def parse(words: Sequence[str]) -> Augment | None:
    """Return the hook that words such as "shift:2", "flip" and "noise:0.1" ask for."""
    hooks = []
    for word in words:
        name, _, setting = word.partition(":")
        if name not in _HOOKS:
            raise BadInput(f"There is no augmentation {word!r}; known are shift:PIXELS, flip and noise:DEVIATION.")
        try:
            hooks.append(_HOOKS[name](setting))
        except ValueError:
            raise BadInput(f"The augmentation {word!r} needs a number after the colon, such as {name}:1.") from None
    return together(hooks)


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
