"""An encoder for each operator that the library can run, by the operator's name."""

from collections.abc import Mapping
from types import MappingProxyType

from hedgerow_agent.core.native.draft import Encoder
from hedgerow_agent.core.native.encoders import (
    attention,
    batch_norm,
    convolution,
    dense,
    elementwise,
    layout,
    loss,
    pooling,
    rows,
    update,
)

ENCODERS: Mapping[str, Encoder] = MappingProxyType(
    {
        **attention.ENCODERS,
        **batch_norm.ENCODERS,
        **convolution.ENCODERS,
        **dense.ENCODERS,
        **elementwise.ENCODERS,
        **layout.ENCODERS,
        **loss.ENCODERS,
        **pooling.ENCODERS,
        **rows.ENCODERS,
        **update.ENCODERS,
    }
)
