"""`hedgerow-agent train --stream` through its bad moments: lines that are none, interruptions, full disks."""

import errno
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from hedgerow_agent import checkpoints as checkpoints_module
from hedgerow_agent import cli
from hedgerow_agent.checkpoints import CheckpointFolder
from hedgerow_agent.files import write_durably
from hedgerow_agent.local import patience
from hedgerow_plans import codec
from hedgerow_plans.methods.selection import Full
from support.digits import digits
from support.programs import make_program

BATCH = 16


@dataclass(frozen=True, slots=True)
class Done:
    """What a command came to."""

    returncode: int
    stdout: str
    stderr: str

    def report(self) -> dict[str, Any]:
        """What it printed, if it came to its end."""
        assert self.returncode == 0, self.stderr
        found: dict[str, Any] = json.loads(self.stdout)
        return found


Stream = Callable[..., Done]


@cache
def lines() -> tuple[str, ...]:
    return tuple(",".join(map(str, [*map(float, x.ravel()), y])) for x, y in zip(digits().x, digits().y, strict=True))


@cache
def program() -> bytes:
    made = make_program("mlp", Full(), batch_size=BATCH)
    return codec.encode(replace(made, rungs=made.rungs[:1]))


def job(every_steps: int = 5, keep: int = 2, rate: str = "0.1") -> str:
    training = {"epochs": 1, "batchSize": BATCH, "seed": 3, "optimizer": {"sgd": {"learningRate": rate}}}
    spec = {
        "model": {"zoo": "mlp", "weights": {"uri": "file:base.safetensors", "sha256": "0" * 64}},
        "dataset": "sensor",
        "method": {"full": {}},
        "training": training,
        "devices": {"selector": {}},
        "checkpoint": {"everySteps": every_steps, "keep": keep},
    }
    return yaml.safe_dump(
        {"apiVersion": "hedgerow.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "pump"}, "spec": spec}
    )


@pytest.fixture
def stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Stream]:
    """Learn from sensor.csv into a folder, in this process: what the command does not catch fails the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    (tmp_path / "job.yaml").write_text(job())
    (tmp_path / "program.json").write_bytes(program())
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def run(*more: object, data: str = "sensor.csv", out: str = "out") -> Done:
        capsys.readouterr()
        settings = ("--program", "program.json", "--from-scratch", "--stream", "--out", out, "-o", "json", *more)
        code = cli.main(["train", "job.yaml", "--data", data, *map(str, settings)])
        done = Done(code, *capsys.readouterr())
        assert "Warning" not in done.stderr
        return done

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


def write(text: Sequence[str], path: Path = Path("sensor.csv")) -> None:
    path.write_text("".join(f"{line}\n" for line in text))


def append(text: Sequence[str], path: Path = Path("sensor.csv")) -> None:
    with path.open("a") as file:
        file.write("".join(f"{line}\n" for line in text))


def kept(out: str = "out") -> CheckpointFolder:
    return CheckpointFolder(Path(out) / "checkpoints")


def residents(out: str = "out") -> bytes:
    resume = kept(out).read_resume()
    assert resume is not None
    return resume.residents


def spoilt(line: str, column: int, word: str) -> str:
    words = line.split(",")
    words[column] = word
    return ",".join(words)


def bad_lines() -> list[str]:
    good = lines()[0]
    return [
        spoilt(good, -1, "12"),
        spoilt(good, -1, "1e12"),
        spoilt(good, -1, "0.5"),
        spoilt(good, 3, "nan"),
        spoilt(good, 3, "1e39"),
        "#!garbage",
        good.rsplit(",", 1)[0],
    ]


def test_bad_lines_cost_nothing_but_themselves(stream: Stream) -> None:
    write(lines()[:320])
    expected = stream(out="clean").report()
    odd = bad_lines()
    write([*lines()[:300], *odd, *lines()[300:320]])
    done = stream()
    found = done.report()
    assert residents() == residents("clean")
    assert found["progress"]["step"] == expected["progress"]["step"] == 20
    assert (found["data"]["samples"], found["data"]["skipped"]) == (320, len(odd))
    told = done.stderr.splitlines()
    assert told[0] == (
        "Line 301 of sensor.csv is skipped: a label is 12 and the model has classes 0 to 9; check the dataset."
    )
    assert told[1].startswith("Line 302 of sensor.csv is skipped: a label is 1000000000000;")
    assert told[2].startswith("Line 303 of sensor.csv is skipped: a label is 0.5;")
    assert told[3] == "Line 304 of sensor.csv is skipped too; from now on such lines are only counted."
    assert len(told) == 4


def test_a_file_that_is_no_stream_for_the_model_ends_with_a_sentence(stream: Stream) -> None:
    write(["1,2,3"] * 150)
    done = stream()
    assert done.returncode == 1
    assert "The first 100 lines of sensor.csv are no readings for this model" in done.stderr
    assert "There are 3 numbers and a reading has 65, the label last" in done.stderr
    write(["1,2,3"] * 50)
    done = stream()
    assert done.returncode == 1
    assert "The stream sensor.csv brought 0 samples, 50 lines skipped; a batch needs 16." in done.stderr
    assert kept().good() == ()


def test_the_same_command_goes_on_to_the_same_bits_as_if_it_had_never_stopped(stream: Stream) -> None:
    odd = bad_lines()[0]
    text = [*lines()[:100], odd, *lines()[100:420]]
    settings = ("--window", 4, "--hop", 3)  # of rows of an image: what they mean does not matter
    rows = [
        ",".join([*line.split(",")[first : first + 16], line.rsplit(",", 1)[1]])
        for line in text
        for first in range(0, 64, 16)
    ]
    write(rows)
    whole = stream(*settings, out="whole").report()
    assert whole["progress"]["step"] == 34
    write([])
    for first, end in pairwise((0, 700, 707, 1300, len(rows))):
        append(rows[first:end])
        part = stream(*settings)
        assert part.report()["progress"]["step"] == kept().good()[-1].step
    assert residents() == residents("whole")
    assert part.report()["progress"]["step"] == whole["progress"]["step"]
    assert part.report()["progress"]["accuracy_before"] is not None
    assert "Going on from step " in part.stderr
    again = stream(*settings).report()
    assert again["progress"]["step"] == whole["progress"]["step"]
    assert residents() == residents("whole")


@dataclass(slots=True)
class Clock:
    """Time in which only waiting takes any, and something happens while it passes."""

    happen: Callable[[float], None]
    now: float = 0.0

    def monotonic(self) -> float:
        """Tell the time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
        self.happen(self.now)


def test_an_interrupted_stream_goes_on_where_it_was(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "time", Clock(lambda _now: signal.raise_signal(signal.SIGINT)))
    write(lines()[:200])
    done = stream("--idle-seconds", 60)
    assert done.returncode == 130, done.stderr
    assert "Stopped after 200 samples. step-000012 is kept in" in done.stderr
    assert "The same command goes on from there." in done.stderr
    append(lines()[200:400])
    found = stream().report()
    assert found["progress"]["step"] == 25
    assert found["data"]["samples"] == 208  # the eight that made no batch come again
    stream(out="whole")
    assert residents() == residents("whole")


def test_a_stream_interrupted_before_its_first_step_says_so(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "time", Clock(lambda _now: signal.raise_signal(signal.SIGINT)))
    write(lines()[:3])
    done = stream("--idle-seconds", 60)
    assert done.returncode == 130
    assert done.stderr == "Stopped after 3 samples. The base model is unchanged.\n"


def test_a_line_now_and_then_keeps_a_stream_open_though_a_sample_takes_many(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [",".join([*lines()[number].split(",")[:8], "1"]) for number in range(8 * BATCH)]
    coming = rows[-8:]

    def drip(_now: float) -> None:
        if clock.now > 0.4 * (9 - len(coming)) and coming:
            append([coming.pop(0)])

    clock = Clock(drip)
    monkeypatch.setattr(patience, "time", clock)
    write(rows[:-8])
    assert stream("--window", 8, "--idle-seconds", 2).report()["data"]["samples"] == BATCH
    assert 5.1 < clock.now < 5.7  # the last line came after 3.2 seconds


def test_only_as_many_checkpoints_stay_as_the_job_wants(stream: Stream) -> None:
    write(lines()[: 23 * BATCH])
    found = stream().report()
    assert [report.step for report in kept().good()] == [20, 23]
    assert found["checkpoint"].endswith("step-000023.safetensors")
    assert len(list(kept().path.iterdir())) == 2 * 2 + 1


def test_another_file_in_the_place_of_the_first_is_read_from_its_beginning(stream: Stream) -> None:
    write(lines()[:320])
    stream()
    Path("sensor.csv").rename("sensor.csv.1")
    write(lines()[320:640])
    done = stream()
    assert done.report()["progress"]["step"] == 40
    assert "Going on from step 20, at the beginning of the stream, which is another file now." in done.stderr
    write(lines()[:640])
    stream(out="whole")
    assert residents() == residents("whole")


def test_a_pipe_teaches_with_the_lines_that_come_now(stream: Stream) -> None:
    os.mkfifo("pipe.csv")

    def feed(text: Sequence[str]) -> None:
        with Path("pipe.csv").open("w") as file:
            file.write("".join(f"{line}\n" for line in text))

    steps = []
    for first in (0, 320):
        thread = threading.Thread(target=feed, args=(lines()[first : first + 320],), daemon=True)
        thread.start()
        steps.append(stream(data="pipe.csv").report()["progress"]["step"])
        thread.join()
    assert steps == [20, 40]
    write(lines()[:640])
    stream(out="whole")
    assert residents() == residents("whole")


def test_checkpoints_that_nothing_goes_on_from_are_neither_overwritten_nor_mixed_in(stream: Stream) -> None:
    write(lines()[:320])
    stream()
    before = {file.name: file.read_bytes() for file in kept().path.glob("step-*")}
    (kept().path / "resume.bin").write_bytes(b"torn")
    done = stream()
    assert done.returncode == 1
    assert "holds step-000020 and nothing that this stream goes on from" in done.stderr
    assert {file.name: file.read_bytes() for file in kept().path.glob("step-*")} == before
    assert stream("--fresh").report()["progress"]["step"] == 20


def test_a_full_disk_is_told_once_and_tried_again(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = []

    def full(path: Path, *content: bytes | memoryview) -> None:
        attempts.append(path.name)
        if len(attempts) in range(4, 7):  # after the first checkpoint, for three more
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_durably(path, *content)

    monkeypatch.setattr(checkpoints_module, "write_durably", full)
    write(lines()[: 25 * BATCH])
    done = stream()
    assert done.report()["progress"]["step"] == 25
    assert done.stderr.count("cannot be written: No space left on device; free some space.") == 1
    assert "The checkpoint of step 10 cannot be written" in done.stderr
    assert [report.step for report in kept().good()] == [5, 25]
    stream(out="whole")
    assert residents() == residents("whole")


def test_a_disk_that_stays_full_is_the_last_word(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, *_content: bytes | memoryview) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(checkpoints_module, "write_durably", full)
    write(lines()[: 25 * BATCH])
    done = stream()
    assert done.returncode == 1
    assert "The checkpoint of step 25 cannot be written: No space left" in done.stderr.splitlines()[-1]
    assert done.stdout == ""


def test_what_does_not_fit_on_a_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"before")
    (tmp_path / "file.new").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        write_durably(tmp_path / "file", b"after")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"before"


def test_a_loss_that_is_no_number_ends_the_stream_with_the_last_good_checkpoint(stream: Stream) -> None:
    loud = ",".join(["1e30"] * 64 + ["3"])
    write([*lines()[:320], *[loud] * BATCH * 3])
    done = stream()
    assert done.returncode == 3, done.stderr
    assert "step-000020 is kept in" in done.stderr
    assert [report.step for report in kept().good()][-1] == 20
    write(lines()[:320])
    stream(out="whole")
    assert residents() == residents("whole")
