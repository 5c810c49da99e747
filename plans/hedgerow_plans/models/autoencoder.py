"""Autoencoders for sound and vibration: they learn to give back what is normal, so that a large error means a fault.

The tensor `logits` of these models is the reconstruction and has the shape of a sample; there are no classes.
"""

import math

from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.models.network import Network

_AD_WIDTHS = (128, 128, 128, 128, 8, 128, 128, 128, 128)
_SMALL_WIDTHS = (32, 8, 32)


def ad_autoencoder(_classes: int, input_shape: tuple[int, ...]) -> Graph:
    """Return MLPerf Tiny's anomaly detector: dense layers with batch norms around a bottleneck of 8."""
    build = Network("ad-autoencoder")
    x = build.flatten("flat", build.input(input_shape))
    for number, width in enumerate(_AD_WIDTHS, start=1):
        x = build.relu(f"relu{number}", build.batch_norm(f"bn{number}", build.linear(f"fc{number}", x, width)))
    return build.graph(_give_back(build, x, input_shape))


def autoencoder(_classes: int, input_shape: tuple[int, ...], hidden: tuple[int, ...] = _SMALL_WIDTHS) -> Graph:
    """Return a small one in the manner of TinyOL, which publishes no sizes; these are ours."""
    build = Network("autoencoder")
    x = build.flatten("flat", build.input(input_shape))
    for number, width in enumerate(hidden, start=1):
        x = build.dense(f"fc{number}", x, width)
    return build.graph(_give_back(build, x, input_shape))


def _give_back(build: Network, x: str, shape: tuple[int, ...]) -> str:
    """Add the last layer, in the shape of a sample."""
    if len(shape) == 1:
        return build.linear("logits", x, shape[0], gain=1.0)
    flat = build.linear("reconstruction", x, math.prod(shape), gain=1.0)
    return build.node("logits", "reshape", (flat,), shape=shape)
