"""A job that was begun by one backend goes on with the other: same checkpoints, same resume file, same result."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hedgerow_agent.checkpoints import CheckpointFolder
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.trainer.deltas import decode_delta
from hedgerow_agent.trainer.protocol import FROM_TRAINER, Budget, Checkpointed, Ready, Said, Start, Stop, as_line
from hedgerow_plans.methods.selection import Full
from hedgerow_plans.protocol.messages import BackendName
from support.devices import STEPS_PER_EPOCH, small_program
from support.lone_trainers import lone_start

BOTH: tuple[BackendName, BackendName] = ("numpy", "native")


class Trainer:
    """A real trainer process that was told to start and has its budget."""

    def __init__(self, start: Start) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "hedgerow_agent.trainer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if name != "HEDGEROW_BACKEND"},
        )
        self.tell(start)
        said = self.hear()
        assert isinstance(said, Ready), said
        self.ready = said
        self.tell(Budget(budget_bytes=None))

    def tell(self, message: Start | Budget | Stop) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(as_line(message))
        self._process.stdin.flush()

    def hear(self) -> Said:
        assert self._process.stdout is not None
        return FROM_TRAINER.validate_json(self._process.stdout.readline())

    def hear_until(self, kind: str) -> Said:
        while (said := self.hear()).kind != kind:
            assert said.kind in {"progress", "checkpoint"}, said
        return said

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


def start_in(folder: Path, backend: BackendName) -> Start:
    return lone_start(folder, small_program(Full())).model_copy(update={"epochs": 2, "backend": backend})


def trained(start: Start) -> dict[str, Array]:
    """Train to the end and return the delta."""
    child = Trainer(start)
    assert start.backend is not None
    assert child.ready.backend.startswith(start.backend)
    child.hear_until("complete")
    child.kill()
    folder = CheckpointFolder(Path(start.folder))
    newest = folder.good()[-1]
    assert newest.step == 2 * STEPS_PER_EPOCH
    content = folder.read_delta(newest.id)
    assert content is not None
    return decode_delta(content, newest.id)


def begun(start: Start) -> None:
    """Train past the first checkpoint and die."""
    child = Trainer(start)
    said = child.hear_until("checkpoint")
    assert isinstance(said, Checkpointed)
    assert said.checkpoint.step == 20
    child.kill()


@pytest.mark.parametrize("first", BOTH)
def test_a_job_begun_by_one_backend_is_finished_by_the_other(tmp_path: Path, first: BackendName) -> None:
    second = next(name for name in BOTH if name != first)
    (tmp_path / "whole").mkdir()
    (tmp_path / "cut").mkdir()
    whole = trained(start_in(tmp_path / "whole", first))
    begun(start_in(tmp_path / "cut", first))
    other = start_in(tmp_path / "cut", second)

    ready = Trainer(other)
    assert ready.ready.progress.step >= 20  # it goes on from the resume file, and not from the beginning
    ready.kill()
    finished = trained(other)

    assert finished.keys() == whole.keys()
    for name, tensor in whole.items():
        np.testing.assert_allclose(finished[name], tensor, rtol=2e-4, atol=2e-5, err_msg=name)


def test_a_job_that_changes_backends_at_a_checkpoint_keeps_the_bits_of_what_was_there(tmp_path: Path) -> None:
    start = start_in(tmp_path, "numpy")
    begun(start)
    folder = CheckpointFolder(Path(start.folder))
    before = folder.read_delta("step-000020")

    trained(start.model_copy(update={"backend": "native"}))

    assert folder.read_delta("step-000020") == before
