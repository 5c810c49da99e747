"""What computes on a device: the library where it is installed, numpy where it is not, and who has a say in it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from build import COMMON
from hedgerow_agent import backends, inputs
from hedgerow_agent.backends import BackendMissing, choose, threads
from hedgerow_agent.core.native.opening import Unavailable, open_library
from hedgerow_plans import asked
from hedgerow_plans.protocol.messages import BackendName, Desired, Phase
from hedgerow_plans.resources.training_job import Backend, Training
from support.devices import Device, OperatorEnd, assignment, running, small_program
from support.digits import digits
from toolchain import host_target

JOB = {
    "apiVersion": "hedgerow.dev/v1alpha1",
    "kind": "TrainingJob",
    "metadata": {"name": "handwriting"},
    "spec": {
        "model": {"zoo": "mlp", "weights": {"uri": "file:base.safetensors", "sha256": "0" * 64}},
        "dataset": "camera",
        "method": {"full": {}},
        "training": {"epochs": 1, "batchSize": 16, "optimizer": {"sgd": {"learningRate": "0.1"}}},
        "devices": {"selector": {}},
    },
}
NOWHERE = Path("/nowhere/libhedgerow.so")


@pytest.fixture
def without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "open_library", lambda: open_library(NOWHERE))


@pytest.mark.parametrize(
    ("environment", "job", "chosen"),
    [
        ("", None, "native"),
        ("", "numpy", "numpy"),
        ("", "native", "native"),
        ("numpy", None, "numpy"),
        ("numpy", "native", "numpy"),
        ("native", "numpy", "native"),
    ],
)
def test_the_environment_counts_more_than_the_job_and_both_more_than_what_is_installed(
    environment: str, job: BackendName | None, chosen: str
) -> None:
    choice = choose(job, {"HEDGEROW_BACKEND": environment})

    assert (choice.name, choice.remark) == (chosen, "")


def test_a_device_without_the_library_trains_in_numpy_with_one_sentence(without_library: None) -> None:
    choice = choose(None, {})

    assert choice.name == "numpy"
    assert choice.remark == f"The compiled backend is not installed ({NOWHERE} is missing); training goes on in numpy."


def test_a_library_that_is_asked_for_and_missing_is_never_replaced_in_silence(without_library: None) -> None:
    with pytest.raises(BackendMissing, match="and the job asks for it: install a wheel"):
        choose("native", {})
    with pytest.raises(BackendMissing, match="and HEDGEROW_BACKEND asks for it"):
        choose("numpy", {"HEDGEROW_BACKEND": "native"})
    waiting = inputs.find_backend("native", {})
    assert waiting is not None
    assert waiting.reason == "BackendMissing"


def test_values_that_make_no_sense_are_named() -> None:
    with pytest.raises(BackendMissing, match="HEDGEROW_BACKEND is 'fortran': set it to numpy or native"):
        choose(None, {"HEDGEROW_BACKEND": "fortran"})
    for text in ("0", "5", "two", "-1"):
        with pytest.raises(BackendMissing, match=f"HEDGEROW_THREADS is '{text}': set it to a number from 1 to 4"):
            threads({"HEDGEROW_THREADS": text})
    assert [threads({}), threads({"HEDGEROW_THREADS": "2"})] == [1, 2]


def test_a_file_that_is_no_library_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "libhedgerow.so").write_text("a text")

    found = open_library(tmp_path / "libhedgerow.so")

    assert isinstance(found, Unavailable)
    assert "cannot be loaded" in found.reason


@pytest.mark.parametrize(
    ("source", "words"),
    [("int hedgerow_abi_version(void) { return 999; }", "has version 999"), ("int other(void);", "cannot be loaded")],
)
def test_a_library_of_another_version_is_refused(tmp_path: Path, source: str, words: str) -> None:
    target = host_target()
    assert target is not None
    (tmp_path / "other.c").write_text(source)
    command = [*target.compiler, *target.flags, *COMMON[:3], "-shared", str(tmp_path / "other.c")]
    subprocess.run([*command, "-o", str(tmp_path / "other.so")], check=True)

    found = open_library(tmp_path / "other.so")

    assert isinstance(found, Unavailable)
    assert words in found.reason


def test_looking_for_the_library_loads_no_numpy() -> None:
    code = "import os, sys; from hedgerow_agent.backends import choose; choose(None, os.environ); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "hedgerow_agent.core.native.opening" in done.stdout.split()
    assert "numpy" not in done.stdout.split()


@pytest.mark.parametrize(("field", "told"), [(None, None), (Backend.NUMPY, "numpy"), (Backend.NATIVE, "native")])
def test_devices_are_told_what_the_job_asks_for(field: Backend | None, told: str | None) -> None:
    training = Training.model_validate(
        {"epochs": 1, "batchSize": 1, "optimizer": {"sgd": {"learningRate": "0.1"}}, "backend": field}
    )

    assert asked.backend(training) == told


@pytest.fixture
def place(tmp_path: Path) -> Path:
    np.savez(tmp_path / "camera.npz", x=digits().x[:300], y=digits().y[:300])
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(JOB))
    return tmp_path


def train(place: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "hedgerow_agent", "train", "job.yaml", "--data", "camera.npz", "--from-scratch"]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=place, env={**os.environ, **environment}
    )


def test_the_train_command_says_what_computed(place: Path) -> None:
    by_library, by_numpy = train(place, HEDGEROW_THREADS="2"), train(place, HEDGEROW_BACKEND="numpy")

    assert "\nbackend     native, for " in by_library.stdout, by_library.stderr
    assert ", on 2 threads; large products by " in by_library.stdout
    assert "\nbackend     numpy\n" in by_numpy.stdout, by_numpy.stderr


def test_the_train_command_refuses_what_it_does_not_know(place: Path) -> None:
    done = train(place, HEDGEROW_BACKEND="fortran")

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == "HEDGEROW_BACKEND is 'fortran': set it to numpy or native, or leave it out.\n"


def test_the_doctor_says_backend_instruction_set_threads_and_blas(tmp_path: Path) -> None:
    device = Device(tmp_path, "alone", 1)
    device.write_files()
    command = [sys.executable, "-m", "hedgerow_agent", "doctor", "--config", str(device.config)]

    def lines(**environment: str) -> list[str]:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, **environment}, timeout=60
        )
        return [line for line in done.stdout.splitlines() if "backend:" in line]

    (native,) = lines()
    assert native.startswith("ok      backend: native, for ")
    assert "on 1 thread; large products by numpy's BLAS (" in native
    assert lines(HEDGEROW_BACKEND="numpy") == ["ok      backend: numpy."]
    (unknown,) = lines(HEDGEROW_BACKEND="fortran")
    assert unknown.startswith("PROBLEM backend: HEDGEROW_BACKEND is 'fortran'")


@pytest.mark.broker
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_an_agent_says_at_birth_what_computes(
    device: Device, operator: OperatorEnd, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    monkeypatch.setenv("HEDGEROW_BACKEND", backend)
    device.write_files()
    reference = operator.publish_program(small_program())
    with running(device):
        operator.desire(Desired(assignment=assignment(reference, epochs=1)))
        operator.wait_for_phase(Phase.COMPLETED)

    births = [state for state in operator.states if state.state == "online"]
    assert [birth.backend for birth in births] == [backend]


@pytest.mark.broker
def test_an_agent_that_cannot_compute_as_asked_waits_and_says_why(
    device: Device, operator: OperatorEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEDGEROW_BACKEND", "fortran")
    device.write_files()
    reference = operator.publish_program(small_program())
    with running(device) as agent:
        operator.desire(Desired(assignment=assignment(reference, epochs=1)))
        report = operator.wait_for(lambda report: report.reason == "BackendMissing", "it waits")

    assert report.phase is Phase.PREPARING
    assert "set it to numpy or native" in report.message
    assert agent.log.read_text().count("No job can train here until then.") == 1
