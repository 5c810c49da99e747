"""Device classes with published figures, one manifest each, to be applied as they are or copied and changed.

The manifests are package data; whoever wants them reads them, this package does no input and output. Only figures that
somebody published are in them, and each says where its figures come from; those without a figure for computing or for
energy are not there at all.
"""

from collections.abc import Mapping
from types import MappingProxyType

LEFT_OUT: Mapping[str, str] = MappingProxyType(
    {
        "nrf5340-dk": "no energy figure was published",
        "raspberry-pi-1": "no compute figure was published",
        "jetson-tx2": "no compute figure was published; POET's entry for it has none",
        "phone-6gb, phone-8gb": "Melon gives budgets (3,800 and 5,500 MB), but no compute figure",
    }
)
"""Devices of the survey that have no class here, and why."""
