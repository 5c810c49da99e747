"""kill -9 at random moments: training ends with the same bits, and nothing that was announced is lost."""

import hashlib
import random
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from safetensors.numpy import load_file

from hedgerow_plans.protocol.messages import Desired, Phase, Reported
from servers.broker import Broker
from support.devices import (
    Device,
    OperatorEnd,
    assignment,
    is_alive,
    kill_process,
    limits_toml,
    running,
    small_program,
)
from support.eventually import eventually

pytestmark = pytest.mark.broker

REST = limits_toml(rest_seconds=0.008)


@pytest.fixture(scope="module")
def undisturbed(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> tuple[Reported, Path]:
    """The same job, run once in peace."""
    device = Device(tmp_path_factory.mktemp("peace"), "peaceful", broker.port)
    device.write_files()
    with OperatorEnd(device) as operator, running(device):
        operator.desire(Desired(assignment=assignment(operator.publish_program(small_program()))))
        return operator.wait_for_phase(Phase.COMPLETED), device.store


def checkpoint_file(store: Path, name: str) -> Path:
    return next((store / "jobs").glob(f"*/*/{name}.safetensors"))


def assert_same_result(report: Reported, store: Path, undisturbed: tuple[Reported, Path]) -> None:
    expected, expected_store = undisturbed
    assert report.checkpoints == expected.checkpoints
    ours = load_file(checkpoint_file(store, report.running))
    theirs = load_file(checkpoint_file(expected_store, expected.running))
    assert ours.keys() == theirs.keys()
    for name, tensor in theirs.items():
        assert np.array_equal(ours[name].view(np.uint8), tensor.view(np.uint8)), name
    assert report.progress is not None
    assert expected.progress is not None
    assert report.progress.accuracy_after == expected.progress.accuracy_after
    assert report.progress.accuracy_before == expected.progress.accuracy_before
    assert report.progress.accuracy_now == expected.progress.accuracy_now
    assert report.progress.memory == expected.progress.memory


def assert_everything_announced_loads(operator: OperatorEnd, store: Path) -> None:
    announced = {one.id: one.sha256 for report in operator.reports for one in report.checkpoints}
    assert announced
    for name, digest in announced.items():
        assert hashlib.sha256(checkpoint_file(store, name).read_bytes()).hexdigest() == digest


@pytest.mark.parametrize("victim", ["trainer", "agent"])
def test_killed_at_random_moments_training_ends_with_the_same_bits(
    device: Device, operator: OperatorEnd, undisturbed: tuple[Reported, Path], victim: str
) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    device.write_files(more=REST)
    reference = operator.publish_program(small_program())
    kills = 2  # a third crash of the trainer would end the job
    with running(device) as agent:
        operator.desire(Desired(assignment=assignment(reference)))
        for _ in range(kills):
            operator.wait_for_phase(Phase.TRAINING)
            time.sleep(moments.uniform(0.0, 0.6))
            trainer = agent.trainer_pid()
            if victim == "agent":
                agent.kill()
                eventually(lambda pid=trainer: pid is None or not is_alive(pid), "the trainer died with its agent")  # type: ignore[misc]
                operator.reports.clear()
                agent.start()
            elif trainer is not None:
                kill_process(trainer)
                eventually(lambda pid=trainer: not is_alive(pid), "the trainer is dead")  # type: ignore[misc]
                operator.wait_for(lambda report: report.crashes or report.phase is Phase.COMPLETED, "the crash counted")
        report = operator.wait_for_phase(Phase.COMPLETED)
        assert report.phase is Phase.COMPLETED
        assert_same_result(report, device.store, undisturbed)
        assert_everything_announced_loads(operator, device.store)
        if victim == "agent":
            assert report.crashes == 0


def test_three_crashes_end_the_job_and_the_device_runs_its_last_good_checkpoint(
    device: Device, operator: OperatorEnd
) -> None:
    device.write_files(more=limits_toml(rest_seconds=0.02))
    reference = operator.publish_program(small_program())
    with running(device) as agent:
        operator.desire(Desired(assignment=assignment(reference, epochs=50)))
        operator.wait_for(lambda report: report.running == "step-000020", "a checkpoint")
        for crash in (1, 2, 3):
            trainer = eventually(agent.trainer_pid, "a trainer")
            assert trainer is not None
            kill_process(trainer)
            operator.wait_for(lambda report, crash=crash: report.crashes == crash, f"crash {crash}")  # type: ignore[misc]
        report = operator.wait_for(
            lambda report: report.phase is Phase.FAILED and "The device runs" in report.message, "giving up"
        )
        assert report.reason == "CrashLoop"
        assert "signal 9" in report.message
        assert report.running == report.checkpoints[-1].id
        time.sleep(0.3)
        assert agent.trainer_pid() is None


def test_training_goes_on_without_a_broker_and_is_reported_when_it_is_back(
    own_broker: Broker, device: Device, undisturbed: tuple[Reported, Path]
) -> None:
    device.port = own_broker.port
    device.write_files(more=REST)
    with running(device):
        with OperatorEnd(device) as operator:
            reference = operator.publish_program(small_program())
            operator.desire(Desired(assignment=assignment(reference)))
            operator.wait_for_phase(Phase.TRAINING)
        own_broker.kill()
        own_broker.delete_store()
        eventually(lambda: list(device.store.glob("jobs/*/*/step-000156.json")), "the last checkpoint, offline")
        own_broker.start()
        with OperatorEnd(device) as operator:
            report = operator.wait_for_phase(Phase.COMPLETED)
            assert report.epoch >= 2
            assert report.observed_sequence == 1
            assert_same_result(report, device.store, undisturbed)


def test_a_stopped_agent_takes_its_job_up_where_it_was(
    device: Device, operator: OperatorEnd, undisturbed: tuple[Reported, Path]
) -> None:
    device.write_files(more=REST)
    reference = operator.publish_program(small_program())
    with running(device) as agent:
        operator.desire(Desired(assignment=assignment(reference)))
        operator.wait_for(lambda report: report.running == "step-000040", "some checkpoints")
        assert agent.stop() == 0
        operator.reports.clear()
        agent.start()
        report = operator.wait_for_phase(Phase.COMPLETED)
        assert_same_result(report, device.store, undisturbed)


def test_a_full_disk_pauses_training_and_nothing_is_lost(device: Device, operator: OperatorEnd) -> None:
    """A limit of zero bytes per file refuses every write, as a full disk does."""
    device.write_files(more=limits_toml(rest_seconds=0.02))
    reference = operator.publish_program(small_program())
    with running(device) as agent:
        operator.desire(Desired(assignment=assignment(reference)))
        operator.wait_for(lambda report: len(report.checkpoints) >= 1, "the first checkpoint")
        trainer = agent.trainer_pid()
        assert trainer is not None
        for pid in (agent.pid, trainer):
            psutil.Process(pid).rlimit(psutil.RLIMIT_FSIZE, (0, psutil.RLIM_INFINITY))

        stalled = operator.wait_for(lambda report: report.reason == "StorageFull", "it says that the disk is full")
        assert stalled.crashes == 0
        assert agent.is_running

        for pid in (agent.pid, trainer):
            psutil.Process(pid).rlimit(psutil.RLIMIT_FSIZE, (psutil.RLIM_INFINITY, psutil.RLIM_INFINITY))
        done = operator.wait_for_phase(Phase.COMPLETED, timeout_seconds=60)
        assert done.crashes == 0
        assert done.reason != "StorageFull"
