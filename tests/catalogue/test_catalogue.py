"""The device classes that come with the package: readable, applicable, listed, and with the right RAM."""

import json

import pytest
import yaml
from click.testing import CliRunner, Result

from hedgerow_operator import classes
from hedgerow_operator.cli import hedgerow
from hedgerow_plans.catalogue import LEFT_OUT
from servers.commands import Command
from support.manifests import ROOT

RAM_BYTES = {
    "arduino-mkr1000": 32_768,
    "arduino-nano-33-ble": 262_144,
    "nrf52840-dk": 262_144,
    "stm32f746g-disco": 327_680,
    "nucleo-l4r5zi": 655_360,
    "nucleo-u575zi-q": 786_432,
    "nucleo-h7a3zi-q": 1_400_000,
    "raspberry-pi-4": 2**31,
}


def run(*words: str) -> Result:
    return CliRunner().invoke(hedgerow, list(words))


def test_every_class_is_read_and_has_the_ram_of_its_board() -> None:
    assert {name: classes.device_class(name).spec.budget_bytes for name in classes.names()} == RAM_BYTES


@pytest.mark.parametrize("name", RAM_BYTES)
def test_a_class_says_where_its_figures_come_from(name: str) -> None:
    device_class = classes.device_class(name)
    assert device_class.metadata.name == name
    assert any(source in device_class.spec.description for source in ("POET", "MLPerf Tiny"))
    assert "RAM" in device_class.spec.description or "2 GB" in device_class.spec.description


def test_a_byte_paged_buys_much_computing_on_m4_and_little_on_m0_and_a72() -> None:
    def operations(name: str) -> float:
        spec = classes.device_class(name).spec
        assert spec.storage is not None
        paged = (spec.storage.picojoules_per_byte_in or 0) + (spec.storage.picojoules_per_byte_out or 0)
        return paged / spec.compute.picojoules_per_flop

    assert operations("nrf52840-dk") == pytest.approx(85, abs=1)
    assert operations("arduino-mkr1000") == pytest.approx(0.37, abs=0.01)
    assert operations("raspberry-pi-4") == pytest.approx(0.38, abs=0.01)


def test_the_list_shows_all_classes_and_what_is_missing() -> None:
    lines = run("classes").output.splitlines()
    assert lines[0].split()[:2] == ["NAME", "MEMORY"]
    assert {line.split()[0] for line in lines[1 : len(RAM_BYTES) + 1]} == set(RAM_BYTES)
    assert all(any(line.startswith(name) for line in lines) for name in LEFT_OUT)


def test_the_list_is_offered_as_json() -> None:
    bodies = json.loads(run("classes", "-o", "json").output)
    assert {body["metadata"]["name"] for body in bodies} == set(RAM_BYTES)


def test_one_class_is_printed_as_its_manifest() -> None:
    shown = run("classes", "show", "nrf52840-dk")
    assert shown.exit_code == 0
    assert yaml.safe_load(shown.output) == classes.body("nrf52840-dk")


def test_an_unknown_class_is_a_sentence() -> None:
    shown = run("classes", "show", "toaster")
    assert shown.exit_code == 2
    assert "no class 'toaster' in the catalogue; known are arduino-mkr1000" in shown.output


def test_a_plan_is_made_for_a_class_of_the_catalogue() -> None:
    planned = run("plan", "--model", "mlp", "--method", "last", "--class", "nrf52840-dk", "--batch", "2", "--fresh")
    assert planned.exit_code == 0, planned.output
    assert "keep-all" in planned.output
    tight = run("plan", "--model", "mlp", "--method", "last", "--class", "nrf52840-dk", "--budget", "64")
    assert "Nothing fits nrf52840-dk" in tight.output


def test_a_plan_needs_exactly_one_class() -> None:
    planned = run("plan", "--model", "mlp")
    assert planned.exit_code == 2
    assert "Give --class with a name" in planned.output


@pytest.mark.cluster
def test_the_api_server_takes_every_class(kubectl: Command) -> None:
    kubectl("apply", "--server-side", "--force-conflicts", "-f", ROOT / "crds/deviceclasses.yaml")
    kubectl("wait", "--for=condition=Established", "crd/deviceclasses.hedgerow.dev", "--timeout=60s")
    for name in classes.names():
        kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", input=classes.manifest(name))
