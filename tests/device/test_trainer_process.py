"""The trainer as a process: its lines, its end, and what it does with hostile ones."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hedgerow_agent.checkpoints import CheckpointFolder
from hedgerow_agent.trainer.protocol import FROM_TRAINER, Budget, Said, Start, Stop, as_line
from hedgerow_plans.protocol.messages import Message
from support.devices import is_alive, small_program
from support.eventually import eventually
from support.lone_trainers import lone_start


class Trainer:
    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hedgerow_agent.trainer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def tell(self, message: Message) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(as_line(message))
        self.process.stdin.flush()

    def hear(self) -> Said:
        assert self.process.stdout is not None
        return FROM_TRAINER.validate_json(self.process.stdout.readline())


@contextmanager
def trainer() -> Iterator[Trainer]:
    started = Trainer()
    try:
        yield started
    finally:
        started.process.kill()
        started.process.communicate()


@pytest.fixture
def start(tmp_path: Path) -> Start:
    return lone_start(tmp_path, small_program())


def kinds_until_the_end(child: Trainer) -> list[str]:
    assert child.process.stdout is not None
    return [json.loads(line)["kind"] for line in child.process.stdout]


def hear_until(child: Trainer, kind: str) -> Said:
    while (said := child.hear()).kind != kind:
        assert said.kind in {"ready", "progress", "paused"}, said
    return said


def test_it_waits_for_a_budget_before_it_builds_its_arena_and_ends_with_complete(start: Start) -> None:
    with trainer() as child:
        child.tell(start)
        ready = child.hear()
        assert ready.kind == "ready"
        child.tell(Budget(budget_bytes=None))
        kinds = kinds_until_the_end(child)
        assert kinds[0] == "progress"
        assert [kind for kind in kinds if kind != "progress"] == ["checkpoint", "checkpoint", "complete"]
        assert child.process.wait(10) == 0


def test_it_ends_when_told_to_even_before_it_began(start: Start) -> None:
    with trainer() as child:
        child.tell(Stop())
        assert child.process.wait(10) == 0
    with trainer() as child:
        child.tell(start)
        child.hear()
        child.tell(Stop())
        assert kinds_until_the_end(child) == []
        assert child.process.wait(10) == 0


def test_it_ends_when_its_stdin_does(start: Start) -> None:
    with trainer() as child:
        child.tell(start.model_copy(update={"epochs": 10_000}))
        child.hear()
        child.tell(Budget(budget_bytes=None))
        assert child.process.stdin is not None
        child.process.stdin.close()
        assert child.process.wait(10) == 0
        child.process.stdin = None


def test_it_dies_with_a_parent_that_holds_its_pipes_open(start: Start, tmp_path: Path) -> None:
    """The pipes are held by this test, so only the kernel's signal can tell the trainer."""
    read_end, write_end = os.pipe()
    code = (
        "import subprocess, sys, os, time\n"
        f"child = subprocess.Popen([sys.executable, '-m', 'hedgerow_agent.trainer'], stdin={read_end})\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, pass_fds=[read_end])
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    os.write(write_end, as_line(start))
    # Its first line shows that it is past the point where it binds itself to its parent.
    assert b"ready" in parent.stdout.readline()
    assert is_alive(pid)
    parent.kill()
    parent.communicate()
    eventually(lambda: not is_alive(pid), "the trainer died with its parent", timeout_seconds=5)
    os.close(read_end)
    os.close(write_end)


def test_it_says_what_it_does_not_understand() -> None:
    with trainer() as child:
        assert child.process.stdin is not None
        child.process.stdin.write(b'{"kind": "dance"}\n')
        child.process.stdin.flush()
        said = child.hear()
        assert said.kind == "error"
        assert child.process.wait(10) == 2


@pytest.mark.parametrize(
    ("change", "reason", "word"),
    [
        ({"program_digest": "0" * 64}, "ProgramDamaged", "digest"),
        ({"weights_sha256": "0" * 64}, "WeightsDiffer", "sha256"),
        ({"dataset_file": "/nowhere.npz"}, "DatasetUnusable", "/nowhere.npz"),
    ],
)
def test_what_does_not_fit_is_rejected_with_a_sentence(
    start: Start, change: dict[str, object], reason: str, word: str
) -> None:
    with trainer() as child:
        child.tell(start.model_copy(update=change))
        said = child.hear()
        assert said.kind == "rejected"
        assert said.reason == reason
        assert word in said.message


def test_a_loss_that_is_no_number_is_a_failure_not_a_crash(start: Start) -> None:
    with trainer() as child:
        child.tell(start.model_copy(update={"learning_rate": "1e30"}))
        child.hear()
        child.tell(Budget(budget_bytes=None))
        assert kinds_until_the_end(child)[-1] == "failed"
        assert child.process.wait(10) == 0


def test_killed_beside_its_first_checkpoint_it_ends_with_the_same_bits(start: Start, tmp_path: Path) -> None:
    """The disk takes the checkpoint but not what training goes on from; the momentum is only in the latter."""
    whole = start.model_copy(update={"folder": str(tmp_path / "whole")})
    with trainer() as child:
        child.tell(whole)
        child.tell(Budget(budget_bytes=None))
        kinds_until_the_end(child)
    expected = CheckpointFolder(tmp_path / "whole").good()
    assert [report.step for report in expected] == [20, 39]

    room_bytes = small_program().resident_bytes - 1
    assert room_bytes > expected[0].size_bytes
    with trainer() as child:
        child.tell(start)
        child.tell(Budget(budget_bytes=None))
        child.tell(Budget(budget_bytes=1))
        hear_until(child, "paused")
        resource.prlimit(child.process.pid, resource.RLIMIT_FSIZE, (room_bytes, room_bytes))
        child.tell(Budget(budget_bytes=None))
        stalled = hear_until(child, "stalled")
        assert stalled.kind == "stalled"
        assert "step 20" in stalled.message
    kept = CheckpointFolder(Path(start.folder)).good()
    assert kept == expected[:1]

    with trainer() as child:
        child.tell(start.model_copy(update={"from_checkpoint": kept[0].id}))
        child.tell(Budget(budget_bytes=None))
        assert kinds_until_the_end(child)[-1] == "complete"
    assert CheckpointFolder(Path(start.folder)).good() == expected
