"""How much energy training takes: measured where the machine offers a counter, else modelled, and always labelled.

A counter of the whole processor package (RAPL) counts everything that runs on it; that is what can be measured. The
model multiplies what was executed with what the plan promises for it.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from hedgerow_plans.protocol.messages import EnergySource

PICOJOULES_PER_MICROJOULE = 1_000_000


class EnergyMeter(Protocol):
    """Something that knows what was spent since it began."""

    source: EnergySource

    def executed(self, step_picojoules: int, times: int) -> None:
        """Note that a step of this promise ran so many times."""

    def picojoules(self) -> int:
        """Return what was spent since the meter began."""


class ModelledEnergy:
    """Energy by the plans' promises."""

    source = EnergySource.MODELLED

    def __init__(self) -> None:
        self._picojoules = 0

    def executed(self, step_picojoules: int, times: int) -> None:
        """Add the promise of every run."""
        self._picojoules += step_picojoules * times

    def picojoules(self) -> int:
        """Return the sum of the promises."""
        return self._picojoules


class RaplEnergy:
    """Energy by the counters of the processor packages, which start over at a maximum of their own."""

    source = EnergySource.MEASURED

    def __init__(self, packages: Iterable[Path]) -> None:
        self._packages = {package: _read_number(package / "max_energy_range_uj") or 0 for package in packages}
        self._before = {package: _read_number(package / "energy_uj") or 0 for package in self._packages}
        self._microjoules = 0

    def executed(self, step_picojoules: int, times: int) -> None:  # noqa: ARG002 - the counter knows better
        """Read the counters, often enough that none starts over twice in between."""
        for package, largest in self._packages.items():
            now = _read_number(package / "energy_uj")
            if now is None:
                continue
            spent = now - self._before[package]
            self._microjoules += spent if spent >= 0 else spent + largest
            self._before[package] = now

    def picojoules(self) -> int:
        """Return what the counters have counted."""
        return self._microjoules * PICOJOULES_PER_MICROJOULE


def open_meter(powercap_folder: Path) -> EnergyMeter:
    """Return the best meter this machine offers."""
    packages = [
        folder
        for folder in sorted(powercap_folder.glob("intel-rapl:*"))
        if folder.name.count(":") == 1 and _read_number(folder / "energy_uj") is not None
    ]
    return RaplEnergy(packages) if packages else ModelledEnergy()


def _read_number(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None
