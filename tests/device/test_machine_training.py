"""What a device does about an assignment, told as stories about the pure machine."""

from dataclasses import replace

import pytest

from hedgerow_agent.machine import events as happened
from hedgerow_agent.machine import instructions as do
from hedgerow_agent.machine.handle import handle
from hedgerow_agent.machine.state import MachineState
from hedgerow_agent.machine.twin import reported
from hedgerow_agent.trainer import protocol
from hedgerow_plans.protocol.messages import Desired, Phase
from support.machines import JOB, StoryDevice, assigned, at_step, checkpoint, checkpointed, progress, ready


def test_a_new_device_is_idle_and_runs_the_base_model() -> None:
    twin = reported(StoryDevice().happens(happened.Restarted(None, None)).state)
    assert (twin.phase, twin.reason, twin.running, twin.observed_sequence) == (Phase.IDLE, "NoAssignment", "base", 0)


def test_an_assignment_fetches_program_and_inputs_and_then_starts_the_trainer() -> None:
    device = StoryDevice().assigned()
    assert [type(one) for one in device.done if not isinstance(one, do.SaveState | do.PublishReported)] == [
        do.FetchProgram,
        do.LocateInputs,
        do.StartTrainer,
    ]
    assert device.state.phase is Phase.PREPARING
    assert device.happens(ready()).state.phase is Phase.TRAINING


def test_the_state_is_saved_before_anything_starts_and_the_report_comes_last() -> None:
    kinds = [type(one) for one in StoryDevice().assigned().done]
    assert kinds.index(do.SaveState) < kinds.index(do.FetchProgram)
    assert kinds.index(do.FetchProgram) < kinds.index(do.PublishReported)


def test_the_same_document_again_changes_nothing() -> None:
    device = StoryDevice().trained(10)
    again = happened.DesiredAccepted(device.sequence, f"{device.sequence:064x}", device.state.desired)
    assert device.happens(again).done == []


def test_the_same_assignment_in_a_newer_document_goes_on_training() -> None:
    device = StoryDevice().trained(10)
    device.wants(Desired(assignment=assigned(), allowance_bytes=900))
    assert not device.did(do.StopTrainer)
    assert device.did(do.TellTrainer) == [do.TellTrainer(900)]
    assert device.state.phase is Phase.TRAINING


def test_a_new_generation_stops_the_trainer_and_starts_over() -> None:
    device = StoryDevice().trained(10).assigned(generation=2)
    assert [type(one) for one in device.done if isinstance(one, do.StopTrainer | do.StartTrainer)] == [
        do.StopTrainer,
        do.StartTrainer,
    ]
    assert device.state.checkpoints == ()
    assert device.state.crashes == 0


def test_until_a_new_generation_has_a_delta_the_old_one_runs_and_is_spelled_out() -> None:
    device = StoryDevice().trained(10).assigned(generation=2).happens(ready())
    assert reported(device.state).running == "job-a.1.step-000010"
    assert reported(device.happens(checkpointed(10)).state).running == "step-000010"


def test_without_an_assignment_the_trainer_is_stopped_and_the_delta_stays() -> None:
    device = StoryDevice().trained(10).wants(Desired())
    assert device.did(do.StopTrainer)
    assert device.state.phase is Phase.IDLE
    assert reported(device.state).running == "step-000010"
    assert reported(device.state).job_uid is None


def test_a_finished_job_that_is_assigned_again_is_not_trained_again() -> None:
    device = StoryDevice().trained(100).happens(happened.TrainerSaid(protocol.Complete(progress=progress(100))))
    device.happens(happened.TrainerExited(0)).wants(Desired()).assigned()
    assert device.state.phase is Phase.COMPLETED
    assert not device.did(do.StartTrainer)


def test_a_stopped_job_that_is_assigned_again_is_taken_up() -> None:
    device = StoryDevice().trained(10).wants(Desired()).assigned()
    assert device.did(do.StartTrainer) == [do.StartTrainer(assigned(), "step-000010")]


def test_a_checkpoint_is_saved_then_put_to_use_then_announced() -> None:
    device = StoryDevice().trained(10)
    kinds = [type(one) for one in device.done]
    assert kinds.index(do.SaveState) < kinds.index(do.SwapAdapter) < kinds.index(do.PublishReported)
    assert do.PublishTelemetry in kinds
    assert reported(device.state).running == "step-000010"


def test_batches_alone_are_no_news() -> None:
    device = StoryDevice().trained(10).happens(at_step(11), at_step(12))
    assert device.done == []
    assert device.state.progress is not None
    assert device.state.progress.step == 12


def test_old_checkpoints_go_after_they_are_no_longer_announced() -> None:
    device = StoryDevice().assigned(kept=2).happens(ready(), *(checkpointed(step) for step in (10, 20, 30)))
    assert [one.id for one in device.state.checkpoints] == ["step-000020", "step-000030"]
    assert device.did(do.RemoveCheckpoints) == [do.RemoveCheckpoints(JOB, ("step-000010",))]
    assert device.done.index(do.SaveState()) < device.done.index(device.did(do.RemoveCheckpoints)[0])


def test_the_first_budget_is_told_when_the_trainers_footprint_is_known() -> None:
    device = StoryDevice().happens(happened.BudgetChanged(10_000, 1_000)).assigned()
    assert not device.did(do.TellTrainer)
    assert device.happens(ready()).did(do.TellTrainer) == [do.TellTrainer(10_000 - 1_000 - 500)]


def test_a_changed_budget_is_told_once() -> None:
    device = StoryDevice().trained()
    device.happens(happened.BudgetChanged(10_000, 1_000))
    assert device.did(do.TellTrainer) == [do.TellTrainer(8_500)]
    assert device.happens(happened.BudgetChanged(10_000, 1_000)).done == []


def test_when_nothing_fits_the_device_is_paused_with_the_numbers_and_resumes_by_itself() -> None:
    device = StoryDevice().trained().wants(Desired(assignment=assigned(), allowance_bytes=700))
    paused = protocol.Paused(needed_bytes=1000, budget_bytes=700, progress=progress(5))
    device.happens(happened.TrainerSaid(paused))
    twin = reported(device.state)
    assert (twin.phase, twin.reason) == (Phase.PAUSED, "NothingFits")
    assert "needs 1000 bytes" in twin.message
    assert "700 bytes (allowance of the device class)" in twin.message
    device.wants(Desired(assignment=assigned(), allowance_bytes=2000))
    assert device.did(do.TellTrainer) == [do.TellTrainer(2000)]
    assert device.happens(at_step(6)).state.phase is Phase.TRAINING


@pytest.mark.parametrize(
    ("event", "phase", "reason"),
    [
        (happened.InputsMissing(JOB, "WeightsMissing", "Not there."), Phase.PREPARING, "WeightsMissing"),
        (happened.InputsImpossible(JOB, "DatasetUnknown", "No such."), Phase.REJECTED, "DatasetUnknown"),
    ],
)
def test_what_is_missing_may_come_and_what_is_impossible_is_rejected(
    event: happened.Event, phase: Phase, reason: str
) -> None:
    device = StoryDevice()
    device.state = StoryDevice().assigned().state.with_volatile(trainer="absent", trainer_job=None, inputs_ready=False)
    device.happens(event)
    assert (device.state.phase, device.state.reason) == (phase, reason)
    assert not device.did(do.StartTrainer)
    assert bool(device.happens(happened.Tick()).did(do.StartTrainer)) is (phase is Phase.PREPARING)


def test_a_rejected_job_is_never_tried_again() -> None:
    rejected = happened.TrainerSaid(protocol.Rejected(reason="PlanViolation", message="Two tensors overlap."))
    device = StoryDevice().assigned().happens(rejected, happened.TrainerExited(0), happened.Tick())
    assert (device.state.phase, device.state.message) == (Phase.REJECTED, "Two tensors overlap.")
    assert device.loses_power().assigned().state.phase is Phase.REJECTED
    assert not device.did(do.StartTrainer)


def test_a_crash_is_counted_and_the_trainer_starts_again_with_its_last_words_reported() -> None:
    device = StoryDevice().trained(10)
    device.happens(happened.TrainerSaid(protocol.Error(message="MemoryError: no")), happened.TrainerExited(1))
    assert device.did(do.StartTrainer) == [do.StartTrainer(assigned(), "step-000010")]
    twin = reported(device.state)
    assert (twin.phase, twin.reason, twin.crashes) == (Phase.PREPARING, "TrainerCrashed", 1)
    assert "MemoryError: no" in twin.message
    assert "Crash 1 of 3" in twin.message


def test_three_crashes_on_one_generation_end_it_on_the_last_good_checkpoint() -> None:
    device = StoryDevice().trained(10, 20)
    device.bad_files.add("step-000020")
    for _ in range(3):
        device.happens(ready(), happened.TrainerExited(-9))
    twin = reported(device.state)
    assert (twin.phase, twin.reason, twin.crashes, twin.running) == (Phase.FAILED, "CrashLoop", 3, "step-000010")
    assert "signal 9" in twin.message
    assert "The device runs step-000010" in twin.message
    assert not device.did(do.StartTrainer)
    assert device.happens(happened.Tick()).loses_power().state.phase is Phase.FAILED
    assert device.assigned(generation=2).did(do.StartTrainer)
    assert device.state.crashes == 0


def test_a_trainer_that_was_told_to_stop_has_not_crashed() -> None:
    device = StoryDevice().trained(10).wants(Desired())
    assert device.state.crashes == 0


def test_diverged_training_is_not_repeated() -> None:
    device = StoryDevice().trained(10)
    device.happens(happened.TrainerSaid(protocol.Failed(reason="Diverged", message="The loss is nan.")))
    device.happens(happened.TrainerExited(0))
    twin = reported(device.state)
    assert (twin.phase, twin.reason, twin.running) == (Phase.FAILED, "Diverged", "step-000010")


def test_a_refused_document_is_counted_remembered_and_disturbs_nothing() -> None:
    device = StoryDevice().trained(10)
    device.happens(happened.DesiredRefused("Unsigned", "No signature."), happened.DesiredRefused("Replayed", "Old."))
    assert device.done == [do.SaveState(), do.PublishReported()]
    refusal = reported(device.loses_power().state).refusal
    assert refusal is not None
    assert (refusal.count, refusal.reason, refusal.message) == (2, "Replayed", "Old.")


def test_every_connection_is_told_the_whole_twin_with_its_epoch() -> None:
    device = StoryDevice().trained(10).happens(happened.Disconnected(), happened.Connected(4))
    assert device.done == [do.PublishReported()]
    assert reported(device.state).epoch == 4


def test_a_program_that_does_not_come_whole_is_explained_and_awaited() -> None:
    device = StoryDevice().assigned()
    device.state = device.state.with_volatile(trainer="absent", trainer_job=None, program_ready=False)
    device.happens(happened.ProgramDamaged("d" * 64, "The parts do not decompress."))
    assert (device.state.phase, device.state.reason) == (Phase.PREPARING, "ProgramDamaged")
    assert device.happens(happened.ProgramReady("d" * 64)).did(do.StartTrainer)


def test_a_program_that_came_damaged_is_fetched_again_after_a_while() -> None:
    asked = happened.DesiredAccepted(1, "a" * 64, Desired(assignment=assigned()))
    state, first = handle(MachineState(), asked)
    assert do.FetchProgram(assigned().program) in first
    state, _ = handle(state, happened.ProgramDamaged(assigned().program.digest, "Part 3 is missing."))
    assert state.reason == "ProgramDamaged"

    state, again = handle(state, happened.Tick())
    _, then = handle(state, happened.Tick())

    assert do.FetchProgram(assigned().program) in again
    assert do.FetchProgram(assigned().program) not in then


def test_a_disk_that_refuses_is_reported_and_tried_again_without_end() -> None:
    device = StoryDevice().trained(10)
    device.happens(happened.StorageFailed("The device's storage refused a write: no space."))
    twin = reported(device.state)
    assert (twin.reason, twin.message) == ("StorageFull", "The device's storage refused a write: no space.")

    device.happens(happened.Tick())
    assert device.did(do.SaveState)

    device.happens(happened.StorageWorks())
    assert reported(device.state).reason != "StorageFull"
    device.happens(happened.Tick())
    assert not device.did(do.SaveState)


def test_the_twin_names_only_the_newest_checkpoints_however_many_there_are() -> None:
    device = StoryDevice().assigned(kept=100).happens(ready())
    many = tuple(checkpoint(step) for step in range(1, 2001))

    twin = reported(replace(device.state, checkpoints=many))

    assert len(twin.checkpoints) == 102
    assert twin.checkpoints[-1].step == 2000
    assert len(twin.model_dump_json()) < 64 * 1024
