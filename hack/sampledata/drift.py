"""What happens to a sensor in the field: turned by a bump, inverted by a firmware, fogged in the cold."""

from collections.abc import Callable

import numpy as np
from scipy import ndimage

from sampledata.images import Images, Pixels

FOG_PAPER, FOG_INK, FOG_NOISE = 0.6, 0.8, 0.05
"""How bright paper and ink are in fog, and how strong the noise is; strong fog costs far more than chance does."""


def rotate(x: Pixels, degrees: float) -> Pixels:
    """Turn every image about its centre, keeping its size."""
    turned = ndimage.rotate(x, degrees, axes=(3, 2), reshape=False, order=1, mode="constant", cval=0.0)
    return np.asarray(turned, np.float32).clip(0, 1)


def invert(x: Pixels) -> Pixels:
    """Swap ink and paper."""
    return (np.float32(1) - x).astype(np.float32)


def fog(x: Pixels, seed: int) -> Pixels:
    """Lay bright fog over the image: little contrast is left, and the sensor's noise shows."""
    noise = np.random.default_rng(seed).normal(0, FOG_NOISE, x.shape)
    return np.clip(FOG_PAPER + (FOG_INK - FOG_PAPER) * x + noise, 0, 1).astype(np.float32)


DRIFTS: dict[str, Callable[[Pixels, int], Pixels]] = {
    "clean": lambda x, _: x,
    "rotated": lambda x, _: rotate(x, 40.0),
    "inverted": lambda x, _: invert(x),
    "fogged": fog,
}
"""The kinds of drift by name; the number is a seed, for those that need chance."""


def apply(name: str, images: Images, seed: int) -> Images:
    """Return the images as a device with this drift sees them."""
    if name not in DRIFTS:
        raise ValueError(f"There is no drift called {name!r}; there are: {', '.join(DRIFTS)}.")
    return Images(DRIFTS[name](images.x, seed), images.y)
