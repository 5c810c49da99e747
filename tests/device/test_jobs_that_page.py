"""A job whose storage fails while it pages: it waits, says why, and comes to the bits of a job that was left alone."""

import resource
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hedgerow_agent.checkpoints import CheckpointFolder
from hedgerow_agent.core.errors import CoreError
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.trainer import job
from hedgerow_agent.trainer.loading import NO_WEIGHTS_SHA256
from hedgerow_agent.trainer.protocol import Rejected, Said, Stalled, Start
from hedgerow_plans.methods.selection import Full
from support.conversations import Listener
from support.devices import BATCH_SIZE
from support.lone_trainers import lone_start
from support.programs import make_program


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long for storage here."""
    monkeypatch.setattr(job, "_PAGING_RETRY_SECONDS", 0.01)


@pytest.fixture
def limits() -> Iterator[tuple[int, int]]:
    """What files may be as large as; put back afterwards."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield before
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def start_in(folder: Path) -> Start:
    folder.mkdir()
    program = make_program("mlp", Full(), BATCH_SIZE)
    paging = next(plan for plan in program.rungs if plan.strategy == "paging")
    changes = {"weights_file": "", "weights_sha256": NO_WEIGHTS_SHA256, "progress_seconds": 0}
    return lone_start(folder, replace(program, rungs=(paging,))).model_copy(update=changes)


def deltas(start: Start) -> dict[str, str]:
    return {one.id: one.sha256 for one in CheckpointFolder(Path(start.folder)).good()}


@pytest.mark.parametrize("fails_after_step", [5, 25])
def test_a_disk_that_is_full_while_a_step_pages_is_waited_out(
    tmp_path: Path, limits: tuple[int, int], fails_after_step: int
) -> None:
    """A limit of zero bytes per file refuses every write, as a full disk does."""
    alone = start_in(tmp_path / "alone")
    job.run_job(alone, Listener())
    stalls: list[Stalled] = []

    def react(said: Said) -> None:
        if said.kind == "progress" and said.progress.step == fails_after_step and not stalls:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
        elif isinstance(said, Stalled):
            stalls.append(said)
            if len(stalls) == 3:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    start, listener = start_in(tmp_path / "disturbed"), Listener(react)
    job.run_job(start, listener)

    assert [one.kind for one in listener.said].count("stalled") == 3
    assert "Storage took 0 of" in stalls[0].message
    assert stalls[0].message.endswith("make room. Training goes on from what is kept.")
    first = listener.said.index(stalls[0])
    # It is not said to train in between: each message would go over the network.
    assert [one.kind for one in listener.said[first : first + 4]] == ["stalled", "stalled", "stalled", "progress"]
    assert stalls[-1].progress.step == fails_after_step // 20 * 20  # half a step is not gone on from
    assert listener.kinds()[-1] == "complete"
    assert deltas(start) == deltas(alone)
    assert sorted(deltas(start)) == ["step-000020", "step-000039"]


def test_what_else_the_core_refuses_is_the_plan_and_no_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_executor: Executor) -> None:
        raise CoreError("A plan places bytes 0 to 9 in an arena of 8; it was not verified.")

    monkeypatch.setattr(Executor, "prepare", refused)
    listener = Listener()
    job.run_job(start_in(tmp_path / "job"), listener)
    said = listener.said[-1]
    assert isinstance(said, Rejected)
    assert (said.reason, said.message[:19]) == ("PlanBroken", "A plan places bytes")
