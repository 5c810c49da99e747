"""What POET measured of three chips: energy and time of a floating point operation, and of paging to an SD card."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

_PICO, _NANO = 10**12, 10**9


def _of(*factors: str) -> Fraction:
    """Return the product of decimals, exactly."""
    product = Fraction(1)
    for factor in factors:
        product *= Fraction(factor)
    return product


@dataclass(frozen=True, slots=True)
class Chip:
    """Seconds, joules and bytes as fractions, so that rounding happens once."""

    joules_per_flop: Fraction
    seconds_per_flop: Fraction
    storage_watts: Fraction
    out_latency_seconds: Fraction
    out_bytes_per_second: Fraction
    in_latency_seconds: Fraction
    in_bytes_per_second: Fraction

    def compute_picojoules(self, flops: int) -> int:
        """Return what computing costs."""
        return round(flops * self.joules_per_flop * _PICO)

    def compute_nanoseconds(self, flops: int) -> int:
        """Return how long computing takes."""
        return round(flops * self.seconds_per_flop * _NANO)

    def page_picojoules(self, byte_count: int) -> tuple[int, int]:
        """Return what it costs to write bytes to storage, and to read them back."""
        out = self.out_latency_seconds + byte_count / self.out_bytes_per_second
        back = self.in_latency_seconds + byte_count / self.in_bytes_per_second
        return round(out * self.storage_watts * _PICO), round(back * self.storage_watts * _PICO)


_SD_CARD = (_of("0.1", "3.3"), _of("0.000113"), _of("4440000"), _of("0.000109"), _of("4616510"))
_TIMED_FLOPS = _of("1628300000")
"""Operations of the loop that was timed on the two faster chips."""

CHIPS: Mapping[str, Chip] = {
    "m0": Chip(_of("0.012", "0.020", "3.3") / 2000, _of("0.012") / 2000, *_SD_CARD),
    "m4": Chip(_of("255.6237", "0.003328", "3.3") / _TIMED_FLOPS, _of("255.6237") / _TIMED_FLOPS, *_SD_CARD),
    "a72": Chip(
        _of("13.53", "0.6", "5") / _TIMED_FLOPS,
        _of("1") / 2_000_000_000,  # as published; the loop above took 16.6 times as long
        _of("0.03", "5"),
        _of("0.0000185314"),
        _of("24500000"),
        _of("0.00000509561"),
        _of("45500000"),
    ),
}
"""Arduino MKR1000 (Cortex-M0+), nRF52840 (Cortex-M4F) and Raspberry Pi 4 (Cortex-A72)."""
