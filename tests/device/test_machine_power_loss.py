"""Power is lost after every single event of long stories; the device takes up what it was doing."""

from collections.abc import Callable

import pytest

from hedgerow_agent.machine import events as happened
from hedgerow_agent.machine import instructions as do
from hedgerow_agent.machine.state import Trainer
from hedgerow_agent.machine.twin import reported
from hedgerow_agent.trainer import protocol
from hedgerow_plans.protocol.messages import Desired, Phase, RollbackResult
from support.machines import StoryDevice, assigned, at_step, checkpointed, progress, ready

Chapter = Callable[[StoryDevice], object]
COMPLETE = happened.TrainerSaid(protocol.Complete(progress=progress(30)))
PAUSED = happened.TrainerSaid(protocol.Paused(needed_bytes=10, budget_bytes=5, progress=progress(22)))
TRAIN: list[Chapter] = [
    lambda device: device.assigned(),
    lambda device: device.happens(ready()),
    lambda device: device.happens(checkpointed(10)),
    lambda device: device.happens(at_step(15)),
    lambda device: device.happens(checkpointed(20)),
    lambda device: device.happens(PAUSED),
    lambda device: device.happens(checkpointed(30)),
    lambda device: device.happens(COMPLETE),
]


@pytest.mark.parametrize("cut", range(1, len(TRAIN)))
def test_power_lost_while_training_takes_the_job_up_from_its_newest_checkpoint(cut: int) -> None:
    device = StoryDevice()
    for chapter in TRAIN[:cut]:
        chapter(device)
    known = reported(device.state)
    device.loses_power()
    assert device.state.volatile.trainer is Trainer.RUNNING
    newest = known.checkpoints[-1].id if known.checkpoints else None
    assert device.did(do.StartTrainer) == [do.StartTrainer(assigned(), newest)]
    assert reported(device.state).running == known.running
    assert reported(device.state).checkpoints == known.checkpoints
    assert device.state.crashes == 0


def test_power_lost_after_completion_changes_nothing() -> None:
    device = StoryDevice()
    for chapter in TRAIN:
        chapter(device)
    before = reported(device.state)
    device.loses_power()
    assert reported(device.state) == before
    assert not device.did(do.StartTrainer)


@pytest.mark.parametrize("to", ["last", "previous", "base", "step-000010"])
def test_power_lost_while_the_trainer_stops_for_a_rollback_finishes_the_rollback(to: str) -> None:
    steady = StoryDevice().trained(10, 20, 30).happens(at_step(35)).asked_back(to)
    device = StoryDevice().trained(10, 20, 30).happens(at_step(35))
    device.trainer_stops_at_once = False
    device.asked_back(to).loses_power()
    assert device.state.phase is Phase.HELD
    result = reported(device.state).rollback
    assert result is not None
    assert result.result is RollbackResult.COMPLETE
    assert reported(device.state).running == reported(steady.state).running


@pytest.mark.parametrize("to", ["last", "previous", "base"])
def test_power_lost_right_after_the_swap_does_not_change_the_answer(to: str) -> None:
    steady = StoryDevice().trained(10, 20, 30).happens(at_step(35)).asked_back(to)
    device = StoryDevice().trained(10, 20, 30).happens(at_step(35))
    device.trainer_stops_at_once = False
    device.asked_back(to)
    device.active = steady.active
    device.loses_power()
    assert reported(device.state).rollback == reported(steady.state).rollback
    assert device.state.rollbacks == 1


def test_power_lost_between_the_swap_and_the_state_believes_the_pointer() -> None:
    device = StoryDevice().trained(10)
    stored_before = device.stored
    device.happens(checkpointed(20))
    device.stored = stored_before
    assert reported(device.loses_power().state).running == "step-000020"


def test_power_lost_on_a_held_device_keeps_it_held() -> None:
    device = StoryDevice().trained(10, 20).asked_back("previous").loses_power()
    assert device.state.phase is Phase.HELD
    assert reported(device.state).running == "step-000010"


def test_power_lost_while_giving_up_still_ends_on_a_good_checkpoint() -> None:
    device = StoryDevice().trained(10)
    failed = happened.TrainerSaid(protocol.Failed(reason="Diverged", message="The loss is nan."))
    device.happens(failed).loses_power()
    assert (device.state.phase, reported(device.state).running) == (Phase.FAILED, "step-000010")


def test_power_lost_on_an_idle_device_keeps_it_idle() -> None:
    device = StoryDevice().trained(10).wants(Desired()).loses_power()
    assert device.state.phase is Phase.IDLE
    assert not device.did(do.StartTrainer)


def test_a_device_without_a_stored_state_starts_as_new() -> None:
    device = StoryDevice().loses_power()
    assert device.state.phase is Phase.IDLE
