"""The device's command line as people meet it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from servers.broker import Broker
from support.devices import Device


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "hedgerow_agent", *(str(one) for one in arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


@pytest.fixture
def alone(tmp_path: Path) -> Device:
    """A device whose broker is not there."""
    device = Device(tmp_path / "device", "alone", 1)
    device.write_files()
    return device


def test_help_shows_how_it_is_used() -> None:
    done = command("--help")
    assert done.returncode == 0
    for word in ("run", "predict", "doctor", "hedgerow-agent predict --config agent.toml --input probe.npz"):
        assert word in done.stdout


def test_the_version_is_printed() -> None:
    done = command("--version")
    assert done.stdout.startswith("hedgerow-agent ")


def test_a_mistake_in_the_configuration_is_a_sentence_not_a_traceback(tmp_path: Path) -> None:
    file = tmp_path / "agent.toml"
    file.write_text("fleet = 3\n")
    done = command("run", "--config", file)
    assert done.returncode == 2
    assert "fleet = 3: Input should be a valid string." in done.stderr
    assert "Traceback" not in done.stderr


def test_predict_before_any_model_came_says_so(alone: Device) -> None:
    done = command("predict", "--config", alone.config, "--input", alone.probe)
    assert done.returncode == 1
    assert "No model has come to alone yet" in done.stderr
    assert "Traceback" not in done.stderr


def test_doctor_names_what_is_missing_and_what_to_do(alone: Device) -> None:
    (alone.folder / "digits.npz").unlink()
    done = command("doctor", "--config", alone.config)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert any(line.startswith("PROBLEM broker: 127.0.0.1:1 cannot be reached") for line in lines)
    assert any(line.startswith("PROBLEM dataset digits:") and "prepare it" in line for line in lines)
    assert any(line.startswith("ok      models: base.safetensors") for line in lines)


@pytest.mark.broker
def test_doctor_is_content_with_a_device_that_has_everything(broker: Broker, tmp_path: Path) -> None:
    device = Device(tmp_path / "device", "healthy", broker.port)
    device.write_files()
    done = command("doctor", "--config", device.config)
    assert done.returncode == 0, done.stdout
    assert all(line.startswith("ok") for line in done.stdout.splitlines())


def test_predict_explains_an_input_it_cannot_use(alone: Device) -> None:
    store = alone.store
    store.mkdir()
    (store / "active.json").write_text(
        json.dumps(
            {
                "job": {"job_uid": "j", "generation": 1},
                "checkpoint": None,
                "program_digest": "0" * 64,
                "weights": {"uri": "file:base.safetensors", "sha256": "0" * 64},
                "seed": 0,
            }
        )
    )
    odd = alone.folder / "odd.npz"
    np.savez(odd, z=np.zeros(3))
    done = command("predict", "--config", alone.config, "--input", odd)
    assert done.returncode == 1
    assert "It needs an array x" in done.stderr
    done = command("predict", "--config", alone.config, "--input", alone.probe)
    assert done.returncode == 1
    assert "is not the one with the digest" in done.stderr
