"""Runs of `hedgerow-agent train` that meet in one folder: gone on with or set aside, and never lost or mixed."""

import itertools
import os
import resource
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from hedgerow_agent.checkpoints import CheckpointFolder
from hedgerow_agent.local import planning
from hedgerow_agent.local.runs import alone_in
from hedgerow_agent.local.terminal import Terminal
from hedgerow_agent.trainer import conversation, protocol
from hedgerow_agent.weights import map_tensors
from hedgerow_plans.program import build_program
from support.digits import digits
from support.train_command import Train, job, refused, report

LINE = ("job.yaml", "--data", "camera.npz", "--from-scratch", "--out", "st", "-o", "json")
STEPS_PER_EPOCH = 78


def files(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def steps(folder: Path) -> list[int]:
    return [one.step for one in CheckpointFolder(folder / "checkpoints").good()]


def same_delta(one: Path, other: Path) -> bool:
    mine, theirs = map_tensors(one), map_tensors(other)
    return mine.keys() == theirs.keys() and all(np.array_equal(mine[name], theirs[name]) for name in mine)


def when_said(monkeypatch: pytest.MonkeyPatch, kind: str, number: int, action: Callable[[], object]) -> None:
    """Do something once the trainer has said so many messages of a kind."""
    say, counted = Terminal.say, itertools.count(1)

    def listening(terminal: Terminal, message: protocol.Said) -> None:
        say(terminal, message)
        if message.kind == kind and next(counted) == number:
            action()

    monkeypatch.setattr(Terminal, "say", listening)


def interrupt() -> None:
    """Press Ctrl-C."""
    os.kill(os.getpid(), signal.SIGINT)


def test_another_run_sets_the_one_before_aside_and_tells_of_its_own(place: Path, train: Train) -> None:
    first = report(train(*LINE))
    before = files(place / "st")
    done = train(*LINE, "--epochs", 1, "--seed", 9)
    second = report(done)
    assert second["progress"]["total_steps"] == STEPS_PER_EPOCH
    assert Path(second["checkpoint"]).name == "step-000078.safetensors"
    assert done.stderr == (
        "st holds an earlier run (seed 3, now 9, epochs 3, now 1); that is set aside in earlier-1/.\n"
    )
    assert files(place / "st" / "earlier-1") == before
    assert steps(place / "st") == [60, STEPS_PER_EPOCH]
    alone = report(train(*LINE, "--epochs", 1, "--seed", 9, "--out", "alone"))
    assert same_delta(place / second["checkpoint"], place / alone["checkpoint"])
    assert "earlier-2/" in train(*LINE).stderr
    assert first["progress"]["test"] == report(train(*LINE))["progress"]["test"]
    assert files(place / "st" / "earlier-1") == before


def test_data_that_changed_under_its_name_makes_another_run(place: Path, train: Train) -> None:
    report(train(*LINE, "--epochs", 1))
    np.savez(place / "camera.npz", x=digits().x[:900], y=digits().y[:900])
    done = train(*LINE, "--epochs", 1)
    assert report(done)["data"]["samples"] == 900
    assert "(data that has changed since)" in done.stderr
    assert steps(place / "st" / "earlier-1") == [60, STEPS_PER_EPOCH]


def test_a_manifest_says_how_samples_are_changed_and_an_option_counts_more(place: Path, train: Train) -> None:
    noisy = job(augmentation=[{"noise": {"deviation": "0.5"}}])
    (place / "noisy.yaml").write_text(yaml.safe_dump(noisy))
    once = (*LINE[1:], "--epochs", 1, "--out")
    said = place / report(train("noisy.yaml", *once, "said"))["checkpoint"]
    asked = place / report(train("job.yaml", *once, "asked", "--augment", "noise:0.5"))["checkpoint"]
    assert same_delta(said, asked)
    assert not same_delta(said, place / report(train("job.yaml", *once, "plain"))["checkpoint"])
    less = place / report(train("noisy.yaml", *once, "less", "--augment", "noise:0.1"))["checkpoint"]
    assert not same_delta(said, less)


def test_fresh_begins_anew_and_loses_nothing(place: Path, train: Train) -> None:
    first = report(train(*LINE, "--epochs", 1))
    before = files(place / "st")
    done = train(*LINE, "--epochs", 1, "--fresh")
    assert report(done)["checkpoint"] == first["checkpoint"]
    assert "(--fresh begins anew)" in done.stderr
    assert files(place / "st" / "earlier-1") == before
    assert files(place / "st").keys() == before.keys() | {f"earlier-1/{name}" for name in before}


def test_a_run_that_learnt_nothing_is_not_set_aside(place: Path, train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as stopping:
        when_said(stopping, "progress", 1, interrupt)
        refused(train(*LINE), 130, "Stopped before the first checkpoint")
    assert (place / "st" / "checkpoints" / "resume.bin").exists()
    done = train(*LINE, "--seed", 9)
    assert done.stderr == ""
    alone = report(train(*LINE, "--seed", 9, "--out", "alone"))
    assert same_delta(place / report(done)["checkpoint"], place / alone["checkpoint"])


def test_what_cannot_begin_leaves_the_run_that_is_there_in_its_place(place: Path, train: Train) -> None:
    report(train(*LINE, "--epochs", 1))
    before = files(place / "st")
    np.savez(place / "labels.npz", x=digits().x, y=digits().y + 3)
    refused(train(*LINE, "--data", "labels.npz"), 1, "A label is 12")
    refused(train(*LINE, "--data", "nowhere.npz"), 1, "nowhere.npz cannot be read: No such file")
    refused(train(*LINE, "--augment", "blur"), 2, "There is no augmentation 'blur'")
    assert files(place / "st") == before


def test_a_run_that_came_to_its_end_is_told_about_again(
    place: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = report(train(*LINE))
    before = files(place / "st")
    monkeypatch.setattr(planning, "build_program", None)  # nothing is planned
    done = train(*LINE)
    again = report(done)
    assert "This very run was trained to its end before, step 234; --fresh trains it anew." in done.stderr
    assert (again["checkpoint"], again["progress"]["test"]) == (first["checkpoint"], first["progress"]["test"])
    assert files(place / "st") == before


def test_a_resume_file_says_whose_run_it_is_where_the_record_is_gone(place: Path, train: Train) -> None:
    report(train(*LINE, "--epochs", 1))
    (place / "st" / "run.json").write_text("{torn")
    assert "trained to its end before" in train(*LINE, "--epochs", 1).stderr
    (place / "st" / "run.json").unlink()
    assert "its settings are not known" in train(*LINE, "--epochs", 2).stderr
    assert steps(place / "st" / "earlier-1") == [60, STEPS_PER_EPOCH]


def test_a_record_says_whose_run_it_is_where_the_resume_file_is_gone(
    place: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = report(train(*LINE))
    before = files(place / "st")
    (place / "st" / "checkpoints" / "resume.bin").unlink()
    when_said(monkeypatch, "checkpoint", 3, interrupt)
    refused(train(*LINE), 130, "Stopped; step-000060 is kept")
    assert steps(place / "st") == [40, 60, 220, 234]
    monkeypatch.undo()
    monkeypatch.chdir(place)
    done = train(*LINE)
    assert "Going on from step 60 of 234." in done.stderr
    assert report(done)["progress"]["test"] == first["progress"]["test"]
    deltas = {name for name in before if name.endswith(".safetensors")}
    assert {name: files(place / "st")[name] for name in deltas} == {name: before[name] for name in deltas}
    assert not (place / "st" / "earlier-1").exists()


def planning_otherwise_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    count = iter(range(99))

    def plan(*arguments: Any, **options: Any) -> Any:
        found = build_program(*arguments, **options)
        return replace(found, remarks=(f"planned for the {next(count)}. time",))  # type: ignore[arg-type]

    monkeypatch.setattr(planning, "build_program", plan)


def test_going_on_does_not_depend_on_planning_to_the_same_bytes_again(
    place: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    planning_otherwise_each_time(monkeypatch)
    free = planning.available_bytes()
    with monkeypatch.context() as stopping:
        when_said(stopping, "checkpoint", 2, interrupt)
        refused(train(*LINE), 130, "Stopped; step-000040 is kept")
    monkeypatch.setattr(planning, "available_bytes", lambda: free // 2)
    done = train(*LINE)
    assert done.stderr == "Going on from step 40 of 234.\n"
    whole = report(train(*LINE, "--out", "whole"))
    assert whole["program"] != report(done)["program"]
    assert same_delta(place / report(done)["checkpoint"], place / whole["checkpoint"])


def test_a_program_that_no_longer_fits_is_not_taken_again(
    place: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    report(train(*LINE, "--epochs", 1))
    before = files(place / "st")
    monkeypatch.setattr(planning, "available_bytes", lambda: 1024)
    refused(train(*LINE, "--epochs", 1), 1, "the smallest plan found needs")
    assert files(place / "st") == before


def test_other_wishes_are_planned_for_anew(place: Path, train: Train) -> None:
    report(train(*LINE, "--epochs", 1))
    text = (place / "job.yaml").read_text()
    (place / "job.yaml").write_text(text.replace("batchSize: 16", "batchSize: 8"))
    assert "(batch size 16, now 8)" in train(*LINE, "--epochs", 1).stderr
    (place / "job.yaml").write_text(text.replace("momentum: '0.9'", "momentum: '0.5'"))
    done = train(*LINE, "--epochs", 1)
    assert "batch size 8, now 16" in done.stderr
    (place / "job.yaml").write_text(text)
    assert "(another program)" in train(*LINE, "--epochs", 1).stderr


def test_a_power_cut_while_setting_aside_leaves_everything_to_the_next_attempt(place: Path, train: Train) -> None:
    report(train(*LINE, "--epochs", 1))
    before = files(place / "st")
    (place / "st" / "earlier-1").mkdir()
    for name in ("program.json", "run.json"):
        (place / "st" / name).rename(place / "st" / "earlier-1" / name)
    report(train(*LINE, "--epochs", 2))
    assert files(place / "st" / "earlier-1") == before


def test_two_trainings_never_share_a_folder(place: Path, train: Train) -> None:
    report(train(*LINE, "--epochs", 1))
    before = files(place / "st")
    with alone_in(place / "st"):
        refused(train(*LINE), 1, "Another training writes to st; wait for its end")
    assert files(place / "st") == before


def test_a_stream_that_is_cut_otherwise_is_another_run(place: Path, train: Train) -> None:
    rows = zip(digits().x[:200], digits().y[:200], strict=True)
    lines = [",".join(map(str, [*map(float, x.ravel()), label])) for x, label in rows]
    (place / "sensor.csv").write_text("\n".join(lines) + "\n")
    stream = ("job.yaml", "--data", "sensor.csv", "--from-scratch", "--out", "st", "-o", "json", "--stream")
    first = report(train(*stream))
    again = train(*stream)
    assert "Going on from step 12" in again.stderr
    assert report(again)["progress"]["step"] == 12  # no line has come since
    before = files(place / "st")
    other = train(*stream, "--hop", 2)
    assert "(stream window 1 hop 1, now window 1 hop 2)" in other.stderr
    assert Path(report(other)["checkpoint"]).name == "step-000006.safetensors"
    assert files(place / "st" / "earlier-1") == before
    assert Path(first["checkpoint"]).name == "step-000012.safetensors"


class Disk:
    """A disk that can be full: then no file takes more than a program does."""

    def __init__(self) -> None:
        self._before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, self._before[1]))

    def free(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self._before)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    monkeypatch.setattr(conversation, "_STORAGE_RETRY_SECONDS", 0.01)
    disk = Disk()
    yield disk
    disk.free()


@pytest.mark.parametrize(
    "full", [("progress", "The resume file of step 0 cannot"), ("checkpoint", "The checkpoint of step 40 cannot")]
)
def test_a_full_disk_is_told_once_and_waited_for(
    place: Path, train: Train, disk: Disk, monkeypatch: pytest.MonkeyPatch, full: tuple[str, str]
) -> None:
    full_after, words = full
    when_said(monkeypatch, full_after, 1, disk.fill)
    when_said(monkeypatch, "stalled", 3, disk.free)
    done = train(*LINE)
    found = report(done)
    assert done.stderr.count("\n") == 1, done.stderr
    assert words in done.stderr
    assert "It is tried again; free some space." in done.stderr
    assert steps(place / "st") == [220, 234]
    whole = report(train(*LINE, "--out", "whole"))
    assert same_delta(place / found["checkpoint"], place / whole["checkpoint"])
    assert not list((place / "st").rglob("*.new"))


def test_waiting_for_space_can_be_ended(place: Path, train: Train, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    disk.fill()
    when_said(monkeypatch, "stalled", 3, interrupt)
    done = train(*LINE)
    refused(done, 130, "Stopped before the first checkpoint")
    assert done.stderr.count("It is tried again") == 1
    assert steps(place / "st") == []


def test_a_folder_that_takes_nothing_is_told_before_anything_is_trained(place: Path, train: Train) -> None:
    (place / "st").write_text("a file")
    refused(train(*LINE), 1, "Nothing can be written to st: File exists. Name another folder with --out")
