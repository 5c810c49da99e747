"""The first bad night: agent, trainer, operator and broker are killed while a job runs, and nothing is lost.

The same job runs twice: once in peace, once with kills at moments that a printed seed chooses. Both must end with the
same bits on every device.
"""

import hashlib
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from safetensors.numpy import load_file

from demo.cast import DEVICES, FLEET, class_manifests, job_manifest
from demo.story import Story
from support.eventually import eventually
from support.listener import Announced, listen
from support.sampling import THOROUGH, repetitions
from support.theatre import perform, store_of

pytestmark = [pytest.mark.cluster, pytest.mark.broker, pytest.mark.prometheus]

CAST = tuple(replace(role, rest_seconds=0.1) for role in (DEVICES[0], DEVICES[4]))  # so that kills meet both at work
VICTIM = CAST[0].name
EPOCHS = 12
TIMEOUT_SECONDS = 240.0


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, programs: Path) -> Iterator[Story]:
    with perform(tmp_path_factory.mktemp("kills") / "stage", CAST, programs) as started:
        started.register()
        yield started


@pytest.fixture(scope="module")
def announced(story: Story) -> Iterator[Announced]:
    client, heard = listen(story.stage.broker.host, story.stage.broker.port)
    yield heard
    client.loop_stop()
    client.disconnect()


@pytest.fixture(scope="module")
def undisturbed(story: Story, announced: Announced) -> dict[str, dict[str, bytes]]:
    """What every device has learned when nothing happens, tensor by tensor."""
    apply_job(story, "peace")
    wait_for_success(story, "peace")
    return {role.name: read_final_delta(story, role.name, "peace") for role in CAST}


def apply_job(story: Story, name: str) -> None:
    story.stage.kubectl("apply", "-f", "-", input=class_manifests())
    manifest = job_manifest(story.data.base.sha256, EPOCHS, name=name, checkpoints_kept=100)
    story.stage.kubectl("apply", "-f", "-", input=manifest)


def job_uid(story: Story, name: str) -> str:
    return story.stage.kubectl("get", "trainingjob", name, "-n", FLEET, "-o", "jsonpath={.metadata.uid}").stdout


def wait_for_success(story: Story, name: str) -> None:
    wanted = ("--for=jsonpath={.status.state}=Succeeded", f"--timeout={TIMEOUT_SECONDS:g}s")
    story.stage.kubectl("wait", f"trainingjob/{name}", "-n", FLEET, *wanted, timeout_seconds=TIMEOUT_SECONDS + 30)


def checkpoint_files(story: Story, device: str, name: str) -> list[Path]:
    folder = store_of(story.stage, device) / "jobs" / job_uid(story, name)
    return sorted(folder.glob("*/step-*.safetensors"))


def read_final_delta(story: Story, device: str, name: str) -> dict[str, bytes]:
    return {tensor: values.tobytes() for tensor, values in load_file(checkpoint_files(story, device, name)[-1]).items()}


def kill_agent(story: Story) -> None:
    story.stage.agents[VICTIM].kill()
    story.stage.start_agent(VICTIM)


def kill_trainer(story: Story) -> None:
    agent = psutil.Process(story.stage.agents[VICTIM].pid)

    def trainers() -> list[psutil.Process]:
        return [child for child in agent.children() if "hedgerow_agent.trainer" in " ".join(child.cmdline())]

    for trainer in eventually(trainers, "there is a trainer to kill", pause_seconds=0.01):
        os.kill(trainer.pid, signal.SIGKILL)


def kill_operator(story: Story) -> None:
    assert story.stage.operator is not None
    story.stage.operator.kill()
    story.stage.start_operator()


def kill_broker_and_delete_its_store(story: Story) -> None:
    story.stage.broker.kill()
    story.stage.broker.delete_store()
    story.stage.broker.start()


KILLS: tuple[Callable[[Story], None], ...] = (kill_agent, kill_trainer, kill_operator, kill_broker_and_delete_its_store)


def wait_for_progress(story: Story, name: str, percent: int) -> None:
    """Wait until the victim has come so far, as its own checkpoints tell: operator and broker may be away."""
    uid_folder = store_of(story.stage, VICTIM) / "jobs" / job_uid(story, name)
    total_steps = EPOCHS * 10

    def steps_done() -> int:
        steps = [int(file.stem.removeprefix("step-")) for file in uid_folder.glob("*/step-*.safetensors")]
        return max(steps, default=0)

    eventually(
        lambda: steps_done() * 100 >= percent * total_steps,
        f"{VICTIM} has done {percent} % of {name}",
        timeout_seconds=TIMEOUT_SECONDS,
        pause_seconds=0.05,
    )


# A thorough run tries other moments every time; `make test` says the same of the same code.
FIRST_SEED = int(
    os.environ.get("HEDGEROW_KILL_SEED") or (random.SystemRandom().randrange(1_000_000) if THOROUGH else 1)
)


@pytest.mark.parametrize("number", range(repetitions(quick=1, thorough=10)))
def test_a_job_survives_every_kill_and_ends_with_the_same_bits(
    story: Story,
    announced: Announced,
    undisturbed: dict[str, dict[str, bytes]],
    capfd: pytest.CaptureFixture[str],
    number: int,
) -> None:
    seed = FIRST_SEED + number
    chance = random.Random(seed)
    # The first moment is before the first checkpoint: programs may still be planned or on their way.
    moments = [0, *sorted(chance.sample(range(5, 80), len(KILLS) - 1))]
    kills = chance.sample(KILLS, len(KILLS))
    told = ", ".join(f"{kill.__name__} after {moment} %" for moment, kill in zip(moments, kills, strict=True))
    with capfd.disabled():
        sys.stdout.write(f"\nHEDGEROW_KILL_SEED={seed}: {told}\n")
    name = f"night-{seed}"
    apply_job(story, name)

    for moment, kill in zip(moments, kills, strict=True):
        wait_for_progress(story, name, moment)
        time.sleep(chance.uniform(0, 0.8))  # anywhere between two checkpoints
        kill(story)

    wait_for_success(story, name)
    for role in CAST:
        assert read_final_delta(story, role.name, name) == undisturbed[role.name], f"{role.name} ended with other bits"
    uid = job_uid(story, name)
    mine = {key: digests for key, digests in announced.checkpoints.items() if key[1] == uid}
    assert {device for device, _, _ in mine} == {role.name for role in CAST}
    for (device, _, checkpoint), digests in mine.items():
        (file,) = [path for path in checkpoint_files(story, device, name) if path.stem == checkpoint]
        assert digests == {hashlib.sha256(file.read_bytes()).hexdigest()}, (device, checkpoint)
        assert load_file(file)
