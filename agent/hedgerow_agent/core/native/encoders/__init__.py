"""An encoder for each operator that the library can run, by the operator's name."""

from collections.abc import Mapping
from types import MappingProxyType

from hedgerow_agent.core.native.draft import Encoder
from hedgerow_agent.core.native.encoders import (
    attention,
    batch_norm,
    chance,
    clipping,
    convolution,
    dense,
    elementwise,
    groups,
    layout,
    loss,
    pooling,
    resampling,
    rows,
    standardise,
    update,
)

ENCODERS: Mapping[str, Encoder] = MappingProxyType(
    {
        **attention.ENCODERS,
        **batch_norm.ENCODERS,
        **chance.ENCODERS,
        **clipping.ENCODERS,
        **convolution.ENCODERS,
        **dense.ENCODERS,
        **elementwise.ENCODERS,
        **groups.ENCODERS,
        **layout.ENCODERS,
        **loss.ENCODERS,
        **pooling.ENCODERS,
        **resampling.ENCODERS,
        **rows.ENCODERS,
        **standardise.ENCODERS,
        **update.ENCODERS,
    }
)
