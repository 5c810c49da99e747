"""Going back over the air, told as stories about the pure machine."""

from collections.abc import Callable

import pytest

from hedgerow_agent.machine import events as happened
from hedgerow_agent.machine import instructions as do
from hedgerow_agent.machine.twin import reported
from hedgerow_agent.trainer import protocol
from hedgerow_plans.protocol.messages import Desired, Phase, RollbackResult
from support.machines import JOB, StoryDevice, assigned, at_step, checkpointed, progress, ready

COMPLETE, UNCHANGED, UNABLE = RollbackResult.COMPLETE, RollbackResult.NO_STATE_CHANGE, RollbackResult.UNABLE


def training() -> StoryDevice:
    """A device in the middle of its third interval."""
    return StoryDevice().trained(10, 20, 30).happens(at_step(35))


def finished() -> StoryDevice:
    complete = happened.TrainerSaid(protocol.Complete(progress=progress(30)))
    return StoryDevice().trained(10, 20, 30).happens(complete, happened.TrainerExited(0))


def preparing() -> StoryDevice:
    return StoryDevice().assigned()


STORIES: dict[str, tuple[Callable[[], StoryDevice], str, RollbackResult, str, Phase]] = {
    "last drops the progress since the newest checkpoint": (training, "last", COMPLETE, "step-000030", Phase.HELD),
    "previous is the one before what runs": (training, "previous", COMPLETE, "step-000020", Phase.HELD),
    "base is no delta": (training, "base", COMPLETE, "base", Phase.HELD),
    "an id is that checkpoint": (training, "step-000010", COMPLETE, "step-000010", Phase.HELD),
    "an id that runs still drops progress": (training, "step-000030", COMPLETE, "step-000030", Phase.HELD),
    "an unknown id is not possible and training goes on": (
        training,
        "step-000099",
        UNABLE,
        "step-000030",
        Phase.TRAINING,
    ),
    "last of a finished job is where it is": (finished, "last", UNCHANGED, "step-000030", Phase.COMPLETED),
    "previous of a finished job": (finished, "previous", COMPLETE, "step-000020", Phase.HELD),
    "base of a finished job": (finished, "base", COMPLETE, "base", Phase.HELD),
    "last without any checkpoint is not possible": (preparing, "last", UNABLE, "base", Phase.PREPARING),
    "previous without any checkpoint is not possible": (preparing, "previous", UNABLE, "base", Phase.PREPARING),
    "base before the first checkpoint holds the device": (preparing, "base", UNCHANGED, "base", Phase.HELD),
    "base on a device that never had a job": (StoryDevice, "base", UNCHANGED, "base", Phase.IDLE),
    "last on a device that never had a job": (StoryDevice, "last", UNABLE, "base", Phase.IDLE),
}


@pytest.mark.parametrize(("make", "to", "result", "running", "phase"), STORIES.values(), ids=STORIES.keys())
def test_going_back(
    make: Callable[[], StoryDevice], to: str, result: RollbackResult, running: str, phase: Phase
) -> None:
    device = make().asked_back(to)
    twin = reported(device.state)
    assert twin.rollback is not None
    assert (twin.rollback.result, twin.rollback.running, twin.running, twin.phase) == (result, running, running, phase)
    assert twin.rollback.request_id == "r1"
    assert twin.rollback.message


def test_the_trainer_is_gone_before_the_adapter_changes_and_the_answer_is_pending_until_then() -> None:
    device = training()
    device.trainer_stops_at_once = False
    device.asked_back("base")
    assert device.did(do.StopTrainer)
    assert not device.did(do.SwapAdapter)
    pending = reported(device.state).rollback
    assert pending is not None
    assert pending.result is RollbackResult.PENDING
    device.happens(happened.TrainerExited(0))
    assert device.did(do.SwapAdapter)
    assert reported(device.state).running == "base"
    assert device.state.crashes == 0


def test_progress_is_dropped_before_the_state_says_so() -> None:
    device = training().asked_back("previous")
    kinds = [type(one) for one in device.done]
    last_save = len(kinds) - 1 - kinds[::-1].index(do.SaveState)
    assert kinds.index(do.DropProgress) < last_save
    assert device.did(do.DropProgress) == [do.DropProgress(JOB, 20)]
    assert reported(device.state).progress is not None
    assert reported(device.state).progress.step == 20  # type: ignore[union-attr]


def test_a_corrupt_newest_checkpoint_is_passed_over_for_the_next_good_one() -> None:
    device = training()
    device.bad_files.add("step-000030")
    twin = reported(device.asked_back("last").state)
    assert twin.running == "step-000020"
    assert [one.id for one in twin.checkpoints] == ["step-000010", "step-000020"]


def test_a_corrupt_checkpoint_asked_for_by_id_is_not_possible_and_training_goes_on() -> None:
    device = training()
    device.bad_files.add("step-000010")
    device.asked_back("step-000010")
    twin = reported(device.state)
    assert twin.rollback is not None
    assert (twin.rollback.result, twin.running) == (UNABLE, "step-000030")
    assert "altered" in twin.rollback.message
    assert "keeps step-000030" in twin.rollback.message
    assert device.did(do.StartTrainer)


def test_the_same_request_again_is_not_a_new_one_and_a_new_id_is() -> None:
    device = training().asked_back("previous").asked_back("previous")
    assert reported(device.state).running == "step-000020"
    assert not device.did(do.SwapAdapter)
    assert reported(device.asked_back("previous", "r2").state).running == "step-000010"
    unchanged = reported(device.asked_back("step-000010", "r3").state)
    assert unchanged.rollback is not None
    assert (unchanged.rollback.result, unchanged.phase) == (UNCHANGED, Phase.HELD)


def test_a_held_device_does_not_train_until_it_is_released() -> None:
    device = training().asked_back("previous")
    device.happens(happened.Tick(), happened.Connected(2)).loses_power()
    device.wants(device.state.desired.model_copy(update={"rollback": None}))
    assert device.state.phase is Phase.HELD
    assert not device.did(do.StartTrainer)
    device.asked_back("previous", released=True)
    assert device.did(do.DropCheckpoints) == [do.DropCheckpoints(JOB, 20)]
    assert device.did(do.StartTrainer) == [do.StartTrainer(assigned(), "step-000020")]
    assert [one.step for one in device.state.checkpoints] == [10, 20]


def test_released_at_the_base_model_it_trains_from_the_beginning() -> None:
    device = training().asked_back("base").asked_back("base", released=True)
    assert device.did(do.StartTrainer) == [do.StartTrainer(assigned(), None)]
    assert device.state.checkpoints == ()


def test_a_release_of_another_request_releases_nothing() -> None:
    device = training().asked_back("base").asked_back("base", "other", released=True)
    assert device.state.phase is Phase.HELD


def test_a_new_generation_ends_the_hold() -> None:
    device = training().asked_back("base").assigned(generation=2)
    assert device.did(do.StartTrainer)
    assert device.state.phase is Phase.PREPARING


def test_a_held_job_that_is_taken_away_and_given_back_is_still_held() -> None:
    device = training().asked_back("base").wants(Desired())
    assert device.state.phase is Phase.IDLE
    assert device.assigned().state.phase is Phase.HELD


def test_a_failed_device_can_be_rolled_back_and_released_to_try_again() -> None:
    device = training()
    for _ in range(3):
        device.happens(ready(), happened.TrainerExited(1))
    assert device.state.phase is Phase.FAILED
    device.asked_back("previous")
    assert (device.state.phase, reported(device.state).running) == (Phase.HELD, "step-000020")
    device.asked_back("previous", released=True)
    assert device.did(do.StartTrainer)
    assert device.state.crashes == 0


def test_what_was_gone_back_to_is_not_pruned_when_training_passes_it() -> None:
    device = StoryDevice().assigned(kept=1).happens(ready(), checkpointed(10), checkpointed(20))
    assert [one.step for one in device.state.checkpoints] == [20]
    device.asked_back("last").asked_back("last", released=True).happens(ready(), checkpointed(30), checkpointed(40))
    assert [one.step for one in device.state.checkpoints] == [20, 40]


def test_rollbacks_that_changed_something_are_counted() -> None:
    device = training().asked_back("previous").asked_back("step-000020", "r2").asked_back("base", "r3")
    assert device.state.rollbacks == 2


def test_what_finished_training_came_to_stays_on_record_after_going_back() -> None:
    ended = progress(30).model_copy(update={"accuracy_before": 0.4, "accuracy_after": 0.9})
    device = StoryDevice().trained(10, 20, 30).happens(happened.TrainerSaid(protocol.Complete(progress=ended)))
    twin = reported(device.happens(happened.TrainerExited(0)).asked_back("previous").state)
    assert twin.progress is not None
    assert (twin.progress.accuracy_before, twin.progress.accuracy_after) == (0.4, 0.9)
    assert (twin.progress.step, twin.progress.accuracy_now) == (20, 0.2)


def test_a_release_that_comes_while_the_trainer_is_still_stopping_is_not_lost() -> None:
    device = training()
    device.trainer_stops_at_once = False
    device.asked_back("previous").asked_back("previous", released=True)
    assert reported(device.state).rollback is not None

    device.happens(happened.TrainerExited(0))

    assert device.state.phase is Phase.PREPARING
    assert device.state.ended is None
    assert device.state.running_name == "step-000020"


def test_a_rollback_that_new_work_overtakes_is_answered() -> None:
    device = training()
    device.trainer_stops_at_once = False
    device.asked_back("previous")

    device.assigned(generation=2)

    answer = reported(device.state).rollback
    assert answer is not None
    assert answer.result is UNABLE
    assert "generation 2 was assigned before" in answer.message
