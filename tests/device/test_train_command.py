"""`hedgerow-agent train` as people meet it: a manifest or a program, files and streams, one sentence a mistake."""

import errno
import hashlib
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from safetensors.numpy import save_file

from hedgerow_agent.checkpoints import CheckpointFolder
from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.local import planning, training
from hedgerow_agent.weights import map_tensors
from hedgerow_plans import codec
from support.digits import digits
from support.train_command import Train, command, job, refused, report


@dataclass(frozen=True, slots=True)
class Trained:
    """The folder of a run that came to its end, and its report."""

    folder: Path
    report: dict[str, Any]

    @property
    def program(self) -> Path:
        """The program that was planned for it."""
        return self.folder / "hedgerow-train" / "handwriting" / "program.json"

    @property
    def checkpoint(self) -> Path:
        """What it learnt."""
        return self.folder / str(self.report["checkpoint"])


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """One run for all tests that only look at what a run leaves behind."""
    folder = tmp_path_factory.mktemp("trained")
    np.savez(folder / "camera.npz", x=digits().x, y=digits().y)
    (folder / "job.yaml").write_text(yaml.safe_dump(job()))
    settings = ("--data", "camera.npz", "--from-scratch", "-o", "json")
    return Trained(folder, report(command("job.yaml", *settings, folder=folder)))


def test_help_teaches() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hedgerow_agent", "train", "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    for words in ("hedgerow plan --out", "--class raspberry-pi-4", "with the label last", "exit codes: 0 trained"):
        assert words in done.stdout
    of_a_manifest = done.stdout.split("how (instead of what a manifest says")[1].split("\n\n")[0]
    assert all(option in of_a_manifest for option in ("--epochs", "--learning-rate", "--seed", "--augment"))
    assert "set aside, not deleted" in " ".join(done.stdout.split())


def test_a_manifest_is_planned_trained_and_told_about(place: Path) -> None:
    done = command("job.yaml", "--data", "camera.npz", "--from-scratch", "--class", "raspberry-pi-4", folder=place)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # nobody watches, so there is no bar
    rows = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert set(rows) == {
        *("program", "data", "steps", "accuracy", "validation", "memory", "energy", "backend", "checkpoint")
    }
    assert "1797 samples" in rows["data"]
    assert "modelled for raspberry-pi-4" in rows["energy"] or "measured" in rows["energy"]
    assert "F1" in rows["validation"]
    planned, measured = (int(word) for word in rows["memory"].split() if word.isdigit())
    assert planned == measured
    before, after = (float(word) for word in rows["accuracy"].split()[1:4:2])
    assert before < 0.3
    assert after > 0.8


def test_what_it_leaves_behind_is_a_delta_that_works(trained: Trained) -> None:
    executor = Executor(codec.decode(trained.program.read_bytes()), {}, seed=3)
    executor.load_delta(map_tensors(trained.checkpoint))
    accuracy = executor.evaluate(digits().x, digits().y).accuracy
    assert accuracy is not None
    assert accuracy > 0.8
    checkpoints = CheckpointFolder(trained.checkpoint.parent)
    assert [one.step for one in checkpoints.good()] == [220, trained.report["progress"]["total_steps"]]
    assert trained.report["energy"]["source"] in {"unknown", "measured"}


def test_a_program_file_trains_what_it_was_planned_for(place: Path, trained: Trained, train: Train) -> None:
    program, settings = trained.program, ("--from-scratch", "--data", "camera.npz", "-o", "json")
    again = report(train(program, *settings, "--learning-rate", "0.1", "--epochs", 3, "--seed", 3, "--out", "o"))
    beside = report(train("job.yaml", *settings, "--program", program, "--out", "p"))
    wanted = map_tensors(trained.checkpoint)
    others = [map_tensors(place / found["checkpoint"]) for found in (again, beside)]
    for name, tensor in wanted.items():
        assert all(np.array_equal(tensor, other[name]) for other in others)
    refused(train(program, *settings), 2, "add --learning-rate RATE")
    refused(train(program, "--data", "camera.npz", "--learning-rate", "0.1"), 2, "add --weights FILE")


def test_what_a_class_does_not_say_of_energy_is_unknown(place: Path, trained: Trained, train: Train) -> None:
    settings = ("--data", "camera.npz", "--from-scratch", "--epochs", 1)
    beside = train("job.yaml", *settings, "--program", trained.program, "--out", "a")
    alone = train(trained.program, *settings, "--learning-rate", "0.1", "--out", "b")
    for done in (beside, alone):
        assert done.returncode == 0, done.stderr
        assert "energy      unknown" in done.stdout or "measured, of the whole processor" in done.stdout


def test_a_program_of_another_job_is_refused_with_both_named(place: Path, trained: Trained, train: Train) -> None:
    settings = ("--data", "camera.npz", "--from-scratch", "--program", trained.program)
    for odd in ({"model": "cnn-small"}, {"method": "bias"}, {"batch": 8}):
        body = job(batchSize=odd.get("batch", 16))
        body["spec"]["model"]["zoo"] = odd.get("model", "mlp")
        body["spec"]["method"] = {odd.get("method", "full"): {}}
        (place / "job.yaml").write_text(yaml.safe_dump(body))
        wants = f"{odd.get('model', 'mlp')} by {odd.get('method', 'full')} in batches of {odd.get('batch', 16)}"
        done = train("job.yaml", *settings)
        refused(done, 1, f"trains mlp by full in batches of 16, and the job handwriting wants {wants}")
    assert not (place / "hedgerow-train").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--program", "p.json", "--class", "raspberry-pi-4"), "--program and --class do not go together"),
        (("--program", "p.json", "--class-file", "c.yaml"), "--program and --class-file do not go together"),
        (("--class", "raspberry-pi-4", "--class-file", "c.yaml"), "each names the class to plan for"),
        (("--from-scratch", "--weights", "base.safetensors"), "each says where parameters start"),
        (("--from-scratch", "--models", "."), "only looked at for the job's own weights"),
        (("--from-scratch", "--window", 8), "--window says how a stream is read; add --stream, or leave it out."),
        (("--from-scratch", "--hop", 8), "--hop says how a stream is read"),
        (("--from-scratch", "--idle-seconds", 5), "--idle-seconds says how a stream is read"),
        (("--from-scratch", "--stream", "--epochs", 2), "each line of a stream is learnt from once"),
    ],
)
def test_options_that_would_do_nothing_are_refused(
    place: Path, train: Train, options: tuple[object, ...], words: str
) -> None:
    refused(train("job.yaml", "--data", "camera.npz", *options), 2, words)


def test_a_schedule_over_steps_and_a_stream_do_not_go_together(place: Path, train: Train) -> None:
    (place / "job.yaml").write_text(yaml.safe_dump(job(schedule={"cosine": {}})))
    refused(train("job.yaml", "--data", "camera.npz", "--from-scratch", "--stream"), 1, "learnt from at one rate")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_planning_can_be_interrupted(
    place: Path, train: Train, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    def long_planning(*_: object, **_options: object) -> None:
        os.kill(os.getpid(), number)
        time.sleep(60)

    monkeypatch.setattr(planning, "build_program", long_planning)
    refused(train("job.yaml", "--data", "camera.npz", "--from-scratch"), 130, "Stopped before training began")


def test_what_the_system_does_not_let_is_a_sentence_and_a_bug_shows_where_it_is(
    place: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(error: Exception) -> None:
        def run(*_: object) -> None:
            raise error

        monkeypatch.setattr(training, "run_job", run)

    fail(OSError(errno.EIO, os.strerror(errno.EIO), "camera.npz"))
    refused(train("job.yaml", "--data", "camera.npz", "--from-scratch"), 1, "Input/output error: 'camera.npz'")
    fail(BadInput("Something odd."))
    refused(train("job.yaml", "--data", "camera.npz", "--from-scratch"), 1, "Something odd")
    fail(KeyError("a bug"))
    with pytest.raises(KeyError):
        train("job.yaml", "--data", "camera.npz", "--from-scratch")


def test_a_budget_chooses_the_rung_and_too_little_is_told_with_numbers(place: Path, train: Train) -> None:
    (place / "job.yaml").write_text(yaml.safe_dump(job()).replace("mlp", "cnn-small"))
    np.savez(place / "some.npz", x=digits().x[:300], y=digits().y[:300])
    settings = ("job.yaml", "--data", "some.npz", "--from-scratch", "-o", "json", "--epochs", 1)
    free = report(train(*settings))["progress"]["memory"]
    peak = free["planned_bytes"]
    tight = report(train(*settings, "--budget", peak - 1, "--out", "tight"))["progress"]["memory"]
    assert tight["planned_bytes"] < peak
    assert tight["measured_bytes"] == tight["planned_bytes"]
    refused(train(*settings, "--budget", "1Ki"), 1, "the smallest plan found needs")


def test_a_class_beside_the_job_is_planned_for(place: Path, train: Train) -> None:
    board = {
        "apiVersion": "hedgerow.dev/v1alpha1",
        "kind": "DeviceClass",
        "metadata": {"name": "shed"},
        "spec": {"memory": {"budget": "96Ki"}, "compute": {"flopsPerSecond": 10**8, "picojoulesPerFlop": 500}},
    }
    (place / "both.yaml").write_text(yaml.safe_dump_all([job(), board]))
    found = report(train("both.yaml", "--data", "camera.npz", "--from-scratch", "-o", "json"))
    assert found["progress"]["memory"]["budget_bytes"] == 96 * 1024
    assert found["progress"]["memory"]["planned_bytes"] <= 96 * 1024
    assert found["energy"]["microjoules"] > 0


def test_weights_are_those_of_the_job_or_none(place: Path, trained: Trained, train: Train) -> None:
    base = Executor(codec.decode(trained.program.read_bytes()), {}, seed=9).delta()
    save_file({name: np.ascontiguousarray(value) for name, value in base.items()}, place / "base.safetensors")
    arguments = ("--data", "camera.npz", "-o", "json", "--program", trained.program)
    refused(train("job.yaml", *arguments), 1, "and the job wants 000")
    body = job()
    body["spec"]["model"]["weights"]["sha256"] = hashlib.sha256((place / "base.safetensors").read_bytes()).hexdigest()
    (place / "job.yaml").write_text(yaml.safe_dump(body))
    named = report(train("job.yaml", *arguments, "--out", "a"))
    given = report(train("job.yaml", *arguments, "--weights", "base.safetensors", "--out", "b"))
    assert named["progress"]["test"] == given["progress"]["test"]
    (place / "base.safetensors").write_bytes((place / "base.safetensors").read_bytes()[:-1])
    damaged = train("job.yaml", *arguments, "--weights", "base.safetensors", "--out", "c")
    refused(damaged, 1, "does not lie where its header says")


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


def test_bad_data_is_one_sentence_and_a_checkpoint_that_was_there_stays(
    place: Path, trained: Trained, train: Train
) -> None:
    shutil.copytree(trained.folder / "hedgerow-train", place / "hedgerow-train")
    kept = place / trained.checkpoint.relative_to(trained.folder)
    for name, words in bad_data(place):
        refused(train("job.yaml", "--data", name, "--from-scratch", "--program", trained.program), 1, words)
    refused(command("job.yaml", "--data", "torn.npz", "--from-scratch", folder=place), 1, "cannot be read")
    assert kept.read_bytes() == trained.checkpoint.read_bytes()


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
def test_a_bad_manifest_is_one_sentence(place: Path, train: Train, text: str, words: str) -> None:
    (place / "job.yaml").write_text(text)
    refused(train("job.yaml", "--data", "camera.npz", "--from-scratch"), 1, words)


@pytest.mark.parametrize("more", [(), ("--stream",)])
def test_an_augmentation_that_does_not_fit_is_one_sentence(
    place: Path, trained: Trained, train: Train, more: tuple[str, ...]
) -> None:
    np.savetxt(place / "camera.csv", np.c_[digits().x.reshape(-1, 64), digits().y][:50], delimiter=",")
    data = "camera.csv" if more else "camera.npz"
    settings = ("--program", trained.program, "--from-scratch", "--data", data, *more, "--augment", "shift:-1")
    refused(train("job.yaml", *settings), 2, "'shift:-1' cannot be used: name a whole number from 1 on")


def test_a_damaged_program_is_refused(place: Path, trained: Trained, train: Train) -> None:
    intact = trained.program.read_bytes()
    (place / "odd.json").write_bytes(
        intact.replace(b'"peak', b'"pick', 1).replace(b'"batchSize":16', b'"batchSize":17', 1)
    )
    refused(train("odd.json", "--data", "camera.npz", "--from-scratch", "--learning-rate", "0.1"), 1, "program")


def test_a_loss_that_is_no_number_stops_with_its_step_and_keeps_a_model_that_works(place: Path, train: Train) -> None:
    body = job(optimizer={"sgd": {"learningRate": "0.1"}})
    body["spec"]["checkpoint"] = {"everySteps": 1, "keep": 3}
    (place / "job.yaml").write_text(yaml.safe_dump(body))
    loud = digits().x * np.float32(1e6)
    np.savez(place / "loud.npz", x=loud, y=digits().y)
    done = train("job.yaml", "--data", "loud.npz", "--from-scratch", "--out", "out")
    refused(done, 3, "training stopped")
    good = CheckpointFolder(place / "out" / "checkpoints").good()
    step = int(re.findall(r"(?:The loss of|After) step (\d+)", done.stderr)[0])
    assert [one.step for one in good] == list(range(max(1, step - 3), step))
    assert f"The checkpoint {good[-1].id} is kept" in done.stderr
    executor = Executor(codec.decode((place / "out" / "program.json").read_bytes()), {}, seed=3)
    executor.load_delta(map_tensors(place / "out" / "checkpoints" / f"{good[-1].id}.safetensors"))
    assert np.isfinite(executor.evaluate(loud, digits().y).loss)


def test_an_interrupted_run_goes_on_to_the_same_bits(place: Path) -> None:
    body = job()
    body["spec"]["checkpoint"] = {"everySteps": 100, "keep": 2}
    (place / "job.yaml").write_text(yaml.safe_dump(body))
    arguments = ("job.yaml", "--data", "camera.npz", "--from-scratch", "--epochs", 30)
    whole = report(command(*arguments, "-o", "json", "--out", "whole", folder=place))
    line = [sys.executable, "-m", "hedgerow_agent", "train", *map(str, arguments), "--out", "part"]
    child = subprocess.Popen(line, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    folder = CheckpointFolder(place / "part" / "checkpoints")
    deadline = time.monotonic() + 120
    while not folder.good() and time.monotonic() < deadline:
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
