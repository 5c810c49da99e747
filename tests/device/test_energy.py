"""Energy is measured where the machine has counters, else modelled, and always labelled."""

from pathlib import Path

from hedgerow_agent.trainer.energy import ModelledEnergy, RaplEnergy, open_meter
from hedgerow_plans.protocol.messages import EnergySource


def package(folder: Path, number: int, microjoules: int, largest: int = 1000) -> Path:
    one = folder / f"intel-rapl:{number}"
    one.mkdir(parents=True, exist_ok=True)
    (one / "energy_uj").write_text(f"{microjoules}\n")
    (one / "max_energy_range_uj").write_text(f"{largest}\n")
    return one


def test_a_machine_without_counters_is_modelled_from_the_promise(tmp_path: Path) -> None:
    meter = open_meter(tmp_path)
    assert meter.source is EnergySource.MODELLED
    meter.executed(1_500, 1)
    meter.executed(500, 2)
    assert meter.picojoules() == 2_500
    assert isinstance(meter, ModelledEnergy)


def test_counters_of_all_packages_are_added_over_their_wraparound(tmp_path: Path) -> None:
    package(tmp_path, 0, 900)
    package(tmp_path, 1, 10)
    (tmp_path / "intel-rapl:0:0").mkdir()  # a part of package 0, which counts it already
    meter = open_meter(tmp_path)
    assert isinstance(meter, RaplEnergy)
    assert meter.source is EnergySource.MEASURED
    package(tmp_path, 0, 100)
    package(tmp_path, 1, 30)
    meter.executed(0, 1)
    assert meter.picojoules() == (200 + 20) * 1_000_000
