"""What a device remembers survives kill -9, torn files and tampering."""

import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from hedgerow_agent.checkpoints import CheckpointFolder, ResumeHeader, checkpoint_id
from hedgerow_agent.files import remove_durably, write_durably
from hedgerow_agent.machine.state import Adapter, JobKey, MachineState, Volatile
from hedgerow_agent.store import Store
from hedgerow_plans.protocol.messages import CheckpointReport, WeightsReference
from support import checkpoint_writer
from support.machines import StoryDevice

KILLS = 8
JOB = JobKey("job", 1)


def header(step: int, resident_bytes: int) -> ResumeHeader:
    return ResumeHeader(
        job_uid="job",
        generation=1,
        program_digest="a" * 64,
        weights_sha256="b" * 64,
        seed=0,
        step=step,
        resident_bytes=resident_bytes,
    )


def said_by(lines: list[str]) -> dict[str, str]:
    """Return name and sha256 of what was announced in whole lines."""
    return {line.split()[0]: line.split()[1] for line in lines if line.endswith("\n")}


def adapter(checkpoint: str | None) -> Adapter:
    weights = WeightsReference(uri="file:base.safetensors", sha256="e" * 64)
    return Adapter(JOB, checkpoint, "d" * 64, weights, 0)


def test_whatever_was_announced_before_kill_9_still_loads(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    folder, announced = CheckpointFolder(tmp_path), dict[str, str]()
    for _ in range(KILLS):
        newest = len(announced)
        command = [sys.executable, checkpoint_writer.__file__, str(tmp_path), str(newest)]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        announced |= said_by([writer.stdout.readline()])
        time.sleep(moments.uniform(0, 0.05))
        writer.kill()
        rest, _ = writer.communicate()
        announced |= said_by(rest.splitlines(keepends=True))
        for name, digest in announced.items():
            found = folder.find(name)
            assert isinstance(found, CheckpointReport), found
            assert found.sha256 == digest
        resume = folder.read_resume()
        assert resume is not None
        assert resume.header.step >= len(announced)
        assert resume.residents == resume.header.step.to_bytes(4, "little") * 5_000
    assert len(announced) >= KILLS


@pytest.mark.parametrize("damage", ["torn", "altered", "gone", "report gone", "report torn"])
def test_a_damaged_checkpoint_is_skipped_and_explained(tmp_path: Path, damage: str) -> None:
    folder = CheckpointFolder(tmp_path)
    for step in (1, 2):
        folder.add(checkpoint_id(step), step, bytes(1000), None)
    delta, report = folder.delta_file("step-000002"), tmp_path / "step-000002.json"
    match damage:
        case "torn":
            delta.write_bytes(bytes(500))
        case "altered":
            delta.write_bytes(b"\1" + bytes(999))
        case "gone":
            delta.unlink()
        case "report gone":
            report.unlink()
        case "report torn":
            report.write_bytes(report.read_bytes()[:20])
    assert [one.id for one in folder.good()] == ["step-000001"]
    assert "step-000002" in str(folder.find("step-000002"))
    assert folder.read_delta("step-000002") is None
    assert folder.read_delta("step-000001") == bytes(1000)


@pytest.mark.parametrize("position", ["digest", "header", "residents", "cut"])
def test_an_altered_resume_file_is_never_loaded(tmp_path: Path, position: str) -> None:
    folder = CheckpointFolder(tmp_path)
    folder.write_resume(header(5, 100), bytes(100))
    assert folder.read_resume() is not None
    file = tmp_path / "resume.bin"
    content = bytearray(file.read_bytes())
    where = {"digest": 3, "header": content.index(b'"step":5') + 7, "residents": len(content) - 1, "cut": 0}[position]
    content[where] ^= 1
    file.write_bytes(content[:-1] if position == "cut" else content)
    assert folder.read_resume() is None


def test_names_cannot_leave_the_folder(tmp_path: Path) -> None:
    CheckpointFolder(tmp_path / "other").add("step-000001", 1, b"x", None)
    assert isinstance(CheckpointFolder(tmp_path / "mine").find("../other/step-000001"), str)


def test_dropping_progress_removes_only_a_later_resume_file(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path)
    folder.write_resume(header(5, 1), b"x")
    folder.drop_progress(after_step=5)
    assert folder.read_resume() is not None
    folder.drop_progress(after_step=4)
    assert folder.read_resume() is None


def test_dropping_checkpoints_after_a_step_keeps_the_earlier_ones(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path)
    for step in (1, 2, 3):
        folder.add(checkpoint_id(step), step, b"x", None)
    folder.drop_after(2)
    assert [one.step for one in folder.good()] == [1, 2]
    assert sorted(file.name for file in tmp_path.glob("step-000003*")) == []


def test_a_swap_to_a_damaged_checkpoint_keeps_what_runs(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.checkpoints(JOB).add("step-000001", 1, b"delta", None)
    assert store.swap_adapter(adapter("step-000001")) == ""
    problem = store.swap_adapter(adapter("step-000002"))
    assert "step-000002" in problem
    assert store.active() == adapter("step-000001")
    assert store.swap_adapter(adapter(None)) == ""
    assert store.active() == adapter(None)


def test_the_epoch_grows_over_restarts_and_a_damaged_counter_starts_over(tmp_path: Path) -> None:
    assert [Store(tmp_path).next_epoch() for _ in range(3)] == [1, 2, 3]
    (tmp_path / "epoch").write_bytes(b"rubbish")
    assert Store(tmp_path).next_epoch() == 1


def test_the_state_comes_back_as_it_was(tmp_path: Path) -> None:
    device = StoryDevice().trained(10, 20).asked_back("previous")
    Store(tmp_path).save_state(device.state)
    loaded = Store(tmp_path).load_state()
    assert loaded is not None
    assert loaded == replace(device.state, volatile=Volatile())


def test_a_state_that_cannot_be_read_is_put_aside_and_the_device_starts_as_new(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save_state(MachineState(observed_sequence=5))
    (tmp_path / "state.json").write_bytes(b'{"observed_sequence": "many"}')
    assert store.load_state() is None
    assert (tmp_path / "state.damaged").exists()


def test_programs_are_known_by_their_content(tmp_path: Path) -> None:
    store = Store(tmp_path)
    digest = store.save_program(b"program")
    assert store.has_program(digest)
    store.program_file(digest).write_bytes(b"Program")
    assert not store.has_program(digest)
    assert not store.has_program("0" * 64)


def test_other_jobs_are_forgotten(tmp_path: Path) -> None:
    store = Store(tmp_path)
    kept, gone = store.save_program(b"kept"), store.save_program(b"gone")
    for job in (JOB, JobKey("job", 2), JobKey("other", 1)):
        store.checkpoints(job).add("step-000001", 1, b"x", None)
    store.forget_others(JOB, kept)
    assert store.has_program(kept)
    assert not store.has_program(gone)
    assert sorted(str(one.relative_to(tmp_path / "jobs")) for one in tmp_path.glob("jobs/*/*")) == ["job/1"]


def test_removing_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    remove_durably(tmp_path / "nothing")
    write_durably(tmp_path / "new" / "file", b"a", b"b")
    assert (tmp_path / "new" / "file").read_bytes() == b"ab"


def test_a_state_that_cannot_be_read_does_not_make_the_device_obey_old_documents(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save_state(MachineState(observed_sequence=7, observed_sha256="c" * 64))
    (tmp_path / "state.json").write_text("{torn")

    left = store.load_state()

    assert left == MachineState(observed_sequence=7, observed_sha256="c" * 64)
