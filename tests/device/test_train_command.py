"""`hedgerow-agent train` as people meet it: a manifest or a program, files and streams, one sentence a mistake."""

import hashlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from safetensors.numpy import save_file

from hedgerow_agent.checkpoints import CheckpointFolder
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.weights import map_tensors
from hedgerow_plans import codec
from support.digits import digits


def command(*arguments: object, folder: Path, **more: Any) -> "subprocess.CompletedProcess[str]":
    line = [sys.executable, "-m", "hedgerow_agent", "train", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False, cwd=folder, **more)


def job(**training: Any) -> dict[str, Any]:
    return {
        "apiVersion": "hedgerow.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": "handwriting"},
        "spec": {
            "model": {"zoo": "mlp", "weights": {"uri": "file:base.safetensors", "sha256": "0" * 64}},
            "dataset": "camera",
            "method": {"full": {}},
            "training": {
                "epochs": 3,
                "batchSize": 16,
                "seed": 3,
                "optimizer": {"sgd": {"learningRate": "0.1", "momentum": "0.9"}},
                **training,
            },
            "devices": {"selector": {}},
            "checkpoint": {"everySteps": 20, "keep": 2},
        },
    }


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a job and data."""
    np.savez(tmp_path / "camera.npz", x=digits().x, y=digits().y)
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job()))
    return tmp_path


def report(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def refused(done: "subprocess.CompletedProcess[str]", exit_code: int, words: str) -> None:
    assert done.returncode == exit_code, done.stdout + done.stderr
    assert words in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_help_teaches() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hedgerow_agent", "train", "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    for words in ("hedgerow plan --out", "--class raspberry-pi-4", "with the label last", "exit codes: 0 trained"):
        assert words in done.stdout


def test_a_manifest_is_planned_trained_and_told_about(place: Path) -> None:
    done = command("job.yaml", "--data", "camera.npz", "--from-scratch", "--class", "raspberry-pi-4", folder=place)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # nobody watches, so there is no bar
    rows = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert set(rows) == {"program", "data", "steps", "accuracy", "validation", "memory", "energy", "checkpoint"}
    assert "1797 samples" in rows["data"]
    assert "modelled for raspberry-pi-4" in rows["energy"] or "measured" in rows["energy"]
    assert "F1" in rows["validation"]
    planned, measured = (int(word) for word in rows["memory"].split() if word.isdigit())
    assert planned == measured
    before, after = (float(word) for word in rows["accuracy"].split()[1:4:2])
    assert before < 0.3
    assert after > 0.8


def test_what_it_leaves_behind_is_a_delta_that_works(place: Path) -> None:
    found = report(command("job.yaml", "--data", "camera.npz", "--from-scratch", "-o", "json", folder=place))
    program = codec.decode((place / "hedgerow-train" / "handwriting" / "program.json").read_bytes())
    executor = Executor(program, {}, seed=3)
    executor.load_delta(map_tensors(place / found["checkpoint"]))
    accuracy = executor.evaluate(digits().x, digits().y).accuracy
    assert accuracy is not None
    assert accuracy > 0.8
    checkpoints = CheckpointFolder((place / found["checkpoint"]).parent)
    assert [one.step for one in checkpoints.good()] == [220, found["progress"]["total_steps"]]
    assert found["energy"]["source"] in {"unknown", "measured"}


def test_a_program_file_trains_what_it_was_planned_for(place: Path) -> None:
    settings = ("--from-scratch", "--data", "camera.npz", "-o", "json")
    first = report(command("job.yaml", *settings, folder=place))
    program = place / "hedgerow-train" / "handwriting" / "program.json"
    again = report(
        command(program, *settings, "--learning-rate", "0.1", "--epochs", 3, "--seed", 3, "--out", "o", folder=place)
    )
    beside = report(command("job.yaml", *settings, "--program", program, "--out", "p", folder=place))
    wanted, *others = (map_tensors(place / found["checkpoint"]) for found in (first, again, beside))
    for name, tensor in wanted.items():
        assert all(np.array_equal(tensor, other[name]) for other in others)
    refused(command(program, *settings, folder=place), 2, "add --learning-rate RATE")
    refused(command(program, "--data", "camera.npz", "--learning-rate", "0.1", folder=place), 2, "add --weights FILE")


def test_a_budget_chooses_the_rung_and_too_little_is_told_with_numbers(place: Path) -> None:
    (place / "job.yaml").write_text(yaml.safe_dump(job()).replace("mlp", "cnn-small"))
    settings = ("job.yaml", "--data", "camera.npz", "--from-scratch", "-o", "json", "--epochs", 1)
    free = report(command(*settings, folder=place))["progress"]["memory"]
    peak = free["planned_bytes"]
    tight = report(command(*settings, "--budget", peak - 1, "--out", "tight", folder=place))["progress"]["memory"]
    assert tight["planned_bytes"] < peak
    assert tight["measured_bytes"] == tight["planned_bytes"]
    refused(command(*settings, "--budget", "1Ki", folder=place), 1, "the smallest plan found needs")


def test_a_class_beside_the_job_is_planned_for(place: Path) -> None:
    board = {
        "apiVersion": "hedgerow.dev/v1alpha1",
        "kind": "DeviceClass",
        "metadata": {"name": "shed"},
        "spec": {"memory": {"budget": "96Ki"}, "compute": {"flopsPerSecond": 10**8, "picojoulesPerFlop": 500}},
    }
    (place / "both.yaml").write_text(yaml.safe_dump_all([job(), board]))
    found = report(command("both.yaml", "--data", "camera.npz", "--from-scratch", "-o", "json", folder=place))
    assert found["progress"]["memory"]["budget_bytes"] == 96 * 1024
    assert found["progress"]["memory"]["planned_bytes"] <= 96 * 1024
    assert found["energy"]["microjoules"] > 0


def test_weights_are_those_of_the_job_or_none(place: Path) -> None:
    program = codec.decode(_planned(place))
    base = Executor(program, {}, seed=9).delta()
    save_file({name: np.ascontiguousarray(value) for name, value in base.items()}, place / "base.safetensors")
    arguments = ("--data", "camera.npz", "-o", "json")
    refused(command("job.yaml", *arguments, folder=place), 1, "and the job wants 000")
    body = job()
    body["spec"]["model"]["weights"]["sha256"] = hashlib.sha256((place / "base.safetensors").read_bytes()).hexdigest()
    (place / "job.yaml").write_text(yaml.safe_dump(body))
    named = report(command("job.yaml", *arguments, "--out", "a", folder=place))
    given = report(command("job.yaml", *arguments, "--weights", "base.safetensors", "--out", "b", folder=place))
    assert named["progress"]["test"] == given["progress"]["test"]
    (place / "base.safetensors").write_bytes((place / "base.safetensors").read_bytes()[:-1])
    damaged = command("job.yaml", *arguments, "--weights", "base.safetensors", "--out", "c", folder=place)
    refused(damaged, 1, "does not lie where its header says")


def _planned(place: Path) -> bytes:
    report(command("job.yaml", "--data", "camera.npz", "--from-scratch", "-o", "json", "--out", "plan", folder=place))
    return (place / "plan" / "program.json").read_bytes()


def bad_data(place: Path) -> Iterator[tuple[str, str]]:
    x, y = digits().x, digits().y
    holes = x.copy()
    holes[5] = np.nan
    np.savez(place / "nan.npz", x=holes, y=y)
    np.savez(place / "labels.npz", x=x, y=y + 3)
    np.savez(place / "empty.npz", x=x[:0], y=y[:0])
    np.savez(place / "few.npz", x=x[:9], y=y[:9])
    np.savez(place / "shape.npz", x=x[:, :, :5], y=y)
    (place / "torn.npz").write_bytes((place / "camera.npz").read_bytes()[:-500])
    yield "nan.npz", "holds NaN or infinity in row 5"
    yield "labels.npz", "A label is 12 and the model has classes 0 to 9"
    yield "empty.npz", "is empty; give it samples"
    yield "few.npz", "lower the batch size"
    yield "shape.npz", "prepare the data for this model"
    yield "torn.npz", "cannot be read"
    yield "nowhere.npz", "cannot be read"


def test_bad_data_is_one_sentence_and_a_checkpoint_that_was_there_stays(place: Path) -> None:
    good = report(command("job.yaml", "--data", "camera.npz", "--from-scratch", "-o", "json", folder=place))
    kept = (place / good["checkpoint"]).read_bytes()
    for name, words in bad_data(place):
        refused(command("job.yaml", "--data", name, "--from-scratch", folder=place), 1, words)
    assert (place / good["checkpoint"]).read_bytes() == kept


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: TrainingJob\nspec: {", "is not YAML"),
        ("kind: Pod\n", "holds 0 objects of kind TrainingJob"),
        (yaml.safe_dump(job(epochs=-1)), "TrainingJob handwriting: spec.training.epochs"),
        (yaml.safe_dump(job(clipping={"globalNorm": "0"})), "globalNorm must be a decimal in quotes above 0"),
        (yaml.safe_dump(job()).replace("mlp", "no-such-model"), "There is no model 'no-such-model' in the zoo"),
    ],
)
def test_a_bad_manifest_is_one_sentence(place: Path, text: str, words: str) -> None:
    (place / "job.yaml").write_text(text)
    refused(command("job.yaml", "--data", "camera.npz", "--from-scratch", folder=place), 1, words)


def test_a_damaged_program_is_refused(place: Path) -> None:
    damaged = _planned(place).replace(b'"peak', b'"pick', 1).replace(b'"batchSize":16', b'"batchSize":17', 1)
    (place / "odd.json").write_bytes(damaged)
    done = command(*("odd.json", "--data", "camera.npz", "--from-scratch", "--learning-rate", "0.1"), folder=place)
    refused(done, 1, "program")


def test_a_loss_that_is_no_number_stops_with_its_step_and_a_checkpoint_kept(place: Path) -> None:
    body = job(optimizer={"sgd": {"learningRate": "30"}})
    body["spec"]["checkpoint"] = {"everySteps": 1, "keep": 3}
    (place / "job.yaml").write_text(yaml.safe_dump(body))
    x = digits().x.copy()
    x[:] *= 1e18
    np.savez(place / "loud.npz", x=x, y=digits().y)
    done = command("job.yaml", "--data", "loud.npz", "--from-scratch", "--out", "out", folder=place)
    refused(done, 3, "training stopped")
    good = CheckpointFolder(place / "out" / "checkpoints").good()
    step = int(done.stderr.split("The loss of step ")[1].split()[0])
    assert good
    assert good[-1].step == step - 1
    assert f"The checkpoint {good[-1].id} is kept." in done.stderr


def test_an_interrupted_run_goes_on_to_the_same_bits(place: Path) -> None:
    arguments = ("job.yaml", "--data", "camera.npz", "--from-scratch", "--epochs", 40)
    whole = report(command(*arguments, "-o", "json", "--out", "whole", folder=place))
    line = [sys.executable, "-m", "hedgerow_agent", "train", *map(str, arguments), "--out", "part"]
    child = subprocess.Popen(line, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    folder = CheckpointFolder(place / "part" / "checkpoints")
    deadline = time.monotonic() + 120
    while folder.resume_header() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=120)
    assert child.returncode == 130, said
    assert "The same command goes on from there" in said
    header = folder.resume_header()
    assert header is not None
    assert 0 < header.step < whole["progress"]["total_steps"]
    part = report(command(*arguments, "-o", "json", "--out", "part", folder=place))
    deltas = [map_tensors(place / found["checkpoint"]) for found in (whole, part)]
    assert all(np.array_equal(deltas[0][name], deltas[1][name]) for name in deltas[0])


def test_a_terminal_sees_a_bar(place: Path) -> None:
    ours, theirs = pty.openpty()
    line = [sys.executable, "-m", "hedgerow_agent", "train", "job.yaml", "--data", "camera.npz", "--from-scratch"]
    with subprocess.Popen(line, cwd=place, stdout=subprocess.DEVNULL, stderr=theirs) as child:
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:
            shown += b""  # the other side is closed
        assert child.wait(60) == 0
    os.close(ours)
    assert b"[########" in shown
    assert b"ms/step" in shown


def test_a_stream_is_learnt_from_while_it_is_written(place: Path) -> None:
    stream = place / "sensor.csv"
    lines = [",".join(map(str, [*map(float, x.ravel()), y])) for x, y in zip(digits().x, digits().y, strict=True)]
    stream.write_text("\n".join(lines[:900]) + "\n")
    line = [*("job.yaml", "--data", "sensor.csv", "--from-scratch", "--stream", "--idle-seconds", "5", "-o", "json")]
    child = subprocess.Popen(
        [sys.executable, "-m", "hedgerow_agent", "train", *line], cwd=place, stdout=subprocess.PIPE, text=True
    )
    checkpoints = CheckpointFolder(place / "hedgerow-train" / "handwriting" / "checkpoints")
    deadline = time.monotonic() + 120
    while not checkpoints.good() and time.monotonic() < deadline:
        time.sleep(0.05)
    with stream.open("a") as file:
        file.write("\n".join(lines[900:]) + "\n")
    out, _ = child.communicate(timeout=120)
    found = json.loads(out)
    assert found["data"]["samples"] == len(lines)
    assert found["progress"]["step"] == len(lines) // 16
    assert found["progress"]["accuracy_after"] > found["progress"]["accuracy_before"] + 0.3
    assert found["data"]["held_bytes"] < 16 * 300
