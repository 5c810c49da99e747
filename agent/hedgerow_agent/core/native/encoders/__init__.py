"""An encoder for each operator that the library can run, by the operator's name."""

from collections.abc import Mapping
from types import MappingProxyType

from hedgerow_agent.core.native.draft import Encoder
from hedgerow_agent.core.native.encoders import dense, elementwise, loss

ENCODERS: Mapping[str, Encoder] = MappingProxyType({**dense.ENCODERS, **elementwise.ENCODERS, **loss.ENCODERS})
