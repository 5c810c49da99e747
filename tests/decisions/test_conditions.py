"""What a job's status says: conditions with numbers, the summary word, counts, and when it is over."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from hedgerow_operator.actions import CheckAgain, Counts, Tell
from hedgerow_operator.decide import decide
from hedgerow_operator.decide.status import seconds
from hedgerow_operator.world import Device, Impossible, Job, ProgramState, Underway, World
from hedgerow_plans.protocol.messages import Phase
from hedgerow_plans.resources.reasons import PlannedReason
from support.worlds import (
    NOW,
    after,
    all_of,
    condition_of,
    device,
    job,
    progress,
    reported,
    status_of,
    told,
    world,
)


def devices(*phases: Phase, total: int | None = None) -> list[Device]:
    listed = [device(f"d{number}", reported=reported(phase)) for number, phase in enumerate(phases)]
    return listed + [device(f"d{number}") for number in range(len(phases), total or 0)]


@dataclass(frozen=True)
class Case:
    """A world, and what its job should say."""

    devices: list[Device]
    job: Job = field(default_factory=job)
    programs: dict[tuple[str, str], ProgramState] | None = None
    state: str = "Training"
    succeeded: tuple[str, str] = ("Unknown", "DevicesTraining")
    planned: tuple[str, str] = ("True", "ProgramsReady")
    progressing: tuple[str, str] = ("True", "DevicesTraining")


DONE, WORK, FAIL, REJECT, HELD = Phase.COMPLETED, Phase.TRAINING, Phase.FAILED, Phase.REJECTED, Phase.HELD
FINISHED = ("False", "JobFinished")

CASES = {
    "some train, some are done": Case(devices(DONE, WORK, WORK)),
    "all are done": Case(
        devices(DONE, DONE), state="Succeeded", succeeded=("True", "ThresholdReached"), progressing=FINISHED
    ),
    "enough are done, one is offline": Case(
        [*devices(DONE, DONE, DONE), device("off", online=False)],
        job(completion={"successThresholdPercent": 75}),
        state="Succeeded",
        succeeded=("True", "ThresholdReached"),
        progressing=FINISHED,
    ),
    "a held device is not counted": Case(
        devices(DONE, HELD), state="Succeeded", succeeded=("True", "ThresholdReached"), progressing=FINISHED
    ),
    "all are held": Case(
        devices(HELD, HELD),
        state="RolledBack",
        succeeded=("Unknown", "AllDevicesHeld"),
        progressing=("False", "NothingAssigned"),
    ),
    "one failed, the others still work": Case(devices(FAIL, WORK)),
    "one failed, and nothing is left to wait for": Case(
        devices(DONE, FAIL), state="Failed", succeeded=("False", "ThresholdUnreachable"), progressing=FINISHED
    ),
    "one rejected it, and that is tolerated": Case(
        devices(DONE, REJECT),
        job(completion={"successThresholdPercent": 50}),
        state="Succeeded",
        succeeded=("True", "ThresholdReached"),
        progressing=FINISHED,
    ),
    "what is left is offline": Case(
        [*devices(DONE), device("off", online=False, reported=reported(WORK))], progressing=("False", "DevicesOffline")
    ),
    "nothing fits the allowance right now": Case(devices(Phase.PAUSED), progressing=("False", "DevicesPaused")),
    "devices have been asked": Case(devices(total=2), progressing=("True", "DevicesPreparing")),
    "suspended": Case(
        devices(WORK),
        job(suspend=True),
        state="Suspended",
        succeeded=("Unknown", "JobSuspended"),
        progressing=("False", "JobSuspended"),
    ),
    "being planned": Case(
        devices(total=1),
        programs={("uid-drift", "board"): Underway()},
        state="Planning",
        succeeded=("Unknown", "WaitingForPlans"),
        planned=("Unknown", "PlanningPrograms"),
        progressing=("False", "NothingAssigned"),
    ),
    "nothing fits the budget": Case(
        devices(total=1),
        programs={("uid-drift", "board"): Impossible(PlannedReason.BUDGET_TOO_SMALL, "Nothing fits.")},
        state="Invalid",
        succeeded=("Unknown", "NothingCanRun"),
        planned=("False", "BudgetTooSmall"),
        progressing=("False", "NothingAssigned"),
    ),
    "no device at all": Case(
        [],
        state="Pending",
        succeeded=("Unknown", "WaitingForDevices"),
        planned=("Unknown", "NoDeviceMatches"),
        progressing=("False", "NothingAssigned"),
    ),
    "nobody is approved": Case(
        [device("shy", approved=False)],
        state="Pending",
        succeeded=("Unknown", "WaitingForDevices"),
        planned=("Unknown", "NoDeviceApproved"),
        progressing=("False", "NothingAssigned"),
    ),
    "every agent is too old": Case(
        [device("old", schema=99)],
        state="Invalid",
        succeeded=("Unknown", "NothingCanRun"),
        planned=("False", "UnsupportedAgent"),
        progressing=("False", "NothingAssigned"),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_conditions(case: Case) -> None:
    actions = decide(world([case.job], case.devices, case.programs), NOW)
    status = status_of(actions)
    found = {condition.type: (condition.status, condition.reason) for condition in status.conditions}
    assert found["Succeeded"] == case.succeeded
    assert found["Planned"] == case.planned
    assert found["Progressing"] == case.progressing
    assert status.state == case.state
    assert set(found) == {"Succeeded", "Planned", "Progressing", "Suspended", "Aborted", "RolledBack"}
    assert all(condition.message and condition.observed_generation == 1 for condition in status.conditions)
    assert (status.completion_time is not None) == (found["Progressing"] == FINISHED)


ON_THE_MOON = {
    "matchLabels": {"site": "moon"},
    "matchExpressions": [{"key": "line", "operator": "In", "values": ["1", "2"]}],
}
NOBODY_MATCHES = """\
None of 2 devices in north has the labels that spec.devices.selector asks for \
(site=moon, line in (1,2)); label devices, or change the selector."""
NOBODY_APPROVED = """\
None of 7 matching devices is approved: p0, p1, p2, p3, p4 and 2 more; \
approve one with `kubectl hedgerow approve device/p0`."""

TEXTS = {
    "unknown model": (
        world([job(model={"zoo": "resnet-9000", "weights": {"uri": "file:w.safetensors", "sha256": "a" * 64}})]),
        "The zoo has no model 'resnet-9000'; set spec.model.zoo to one of: cnn-small, mlp.",
    ),
    "nobody matches": (
        world([job(devices={"selector": ON_THE_MOON})], [device("a"), device("b")]),
        NOBODY_MATCHES,
    ),
    "nobody is approved": (world([job()], [device(f"p{n}", approved=False) for n in range(7)]), NOBODY_APPROVED),
    "programs are ready": (
        world([job()], [device("a")]),
        "1 program for 1 device class: mlp-lora-board-0123abcd.",
    ),
}


@pytest.mark.parametrize(("seen", "text"), TEXTS.values(), ids=TEXTS)
def test_the_planned_condition_says_what_to_do(seen: World, text: str) -> None:
    assert condition_of(decide(seen, NOW), "Planned").message == text


def test_an_object_that_does_not_parse_says_so_and_is_left_alone() -> None:
    broken = Job("drift", "uid-drift", 3, "2026-11-17T10:00:00Z", spec=None, problem="TrainingJob north/drift: bad.")
    actions = decide(world([broken], [device("a")]), NOW)
    assert status_of(actions).state == "Invalid"
    assert condition_of(actions, "Planned").message == "TrainingJob north/drift: bad."
    assert told(actions, "a").desired.assignment is None


def test_counts_progress_and_accuracy_are_over_the_devices() -> None:
    listed = [
        device("a", reported=reported(DONE, progress=progress(100, accuracy_before=0.6, accuracy_after=0.9))),
        device("b", reported=reported(WORK, progress=progress(50, accuracy_before=0.8, accuracy_now=0.8))),
        device("c", online=False),
        device("d", reported=reported(FAIL)),
        device("e", approved=False),
        device("f", reported=reported(HELD)),
        device("g", kernel_table=9),
    ]
    status = status_of(decide(world([job()], listed), NOW))
    assert status.counts == Counts(
        matched=7, approved=6, pending=1, training=1, completed=1, failed=1, rejected=1, held=1, offline=1
    )
    assert status.progress_percent == int((100 + 50 + 0 + 0) / 4)
    assert (status.accuracy_before, status.accuracy_now) == ("0.70", "0.85")


def test_a_report_about_an_earlier_generation_says_nothing_about_this_one() -> None:
    first = world([job()], [device("a", reported=reported(DONE))])
    begun = after(first, decide(first, NOW))
    edited = replace(begun, jobs=(replace(begun.jobs[0], generation=2, spec=job(dataset="other").spec),))
    status = status_of(decide(edited, NOW + 1))
    assert status.state == "Training"
    assert status.counts.completed == 0
    assert status.completion_time is None


def test_the_deadline_ends_a_job_and_stops_its_devices() -> None:
    with_deadline = job(completion={"deadlineSeconds": 60})
    first = world([with_deadline], devices(WORK, DONE))
    actions = decide(first, NOW)
    assert all_of(actions, CheckAgain) == [CheckAgain(60.0)]
    late = after(first, actions)
    actions = decide(late, NOW + 60)
    assert (condition_of(actions, "Succeeded").status, condition_of(actions, "Succeeded").reason) == (
        "False",
        "DeadlineExceeded",
    )
    assert condition_of(actions, "Aborted").message == (
        "The deadline of 60 s has passed: 1 of 2 devices completed, 100 % are asked for."
    )
    over = after(late, actions)
    actions = decide(over, NOW + 61)
    assert told(actions, "d0").desired.assignment is None
    assert told(actions, "d1").desired.assignment is not None, "what is complete stays"
    assert status_of(actions).completion_time == status_of(decide(over, NOW + 500)).completion_time


def test_a_finished_job_stays_finished() -> None:
    first = world([job()], devices(DONE))
    over = after(first, decide(first, NOW))
    joined = replace(over, devices=(*over.devices, device("new")))
    status = status_of(decide(joined, NOW + 100))
    assert status.state == "Succeeded"
    assert told(decide(joined, NOW + 100), "new").desired.assignment is None


def test_transition_times_move_only_with_the_status() -> None:
    first = world([job()], devices(WORK, WORK))
    begun = after(first, decide(first, NOW))
    before = condition_of(decide(first, NOW), "Progressing")
    further = replace(begun, devices=tuple(devices(DONE, WORK)))
    same = condition_of(decide(further, NOW + 100), "Progressing")
    assert same.message != before.message
    assert same.last_transition_time == before.last_transition_time
    done = condition_of(decide(replace(begun, devices=tuple(devices(DONE, DONE))), NOW + 200), "Progressing")
    assert done.last_transition_time > before.last_transition_time


def test_people_are_told_once() -> None:
    first = world([job()], devices(DONE))
    actions = decide(first, NOW)
    assert [(t.reason, t.is_warning) for t in all_of(actions, Tell)] == [
        ("ProgramPlanned", False),
        ("JobSucceeded", False),
    ]
    assert not all_of(decide(after(first, actions), NOW + 1), Tell)


def test_deciding_twice_gives_the_same_and_carried_out_it_gives_nothing_new() -> None:
    first = world([job()], devices(DONE, WORK, total=3))
    assert decide(first, NOW) == decide(first, NOW)
    settled = after(first, decide(first, NOW))
    once = decide(settled, NOW + 1)
    assert decide(after(settled, once), NOW + 2) == once


def test_a_job_edited_after_its_deadline_has_the_whole_time_again() -> None:
    limited: dict[str, Any] = {"completion": {"deadlineSeconds": 60}}
    first = world([job(**limited)], devices(WORK))
    begun = after(first, decide(first, NOW))
    late = after(begun, decide(begun, NOW + 100))
    assert late.jobs[0].status.state == "Failed"
    edited = job(dataset="other", generation=2, **limited).spec
    again = replace(late, jobs=(replace(late.jobs[0], generation=2, spec=edited),))
    actions = decide(again, NOW + 1000)
    assert (status_of(actions).state, condition_of(actions, "Succeeded").status) == ("Training", "Unknown")
    assert seconds(status_of(actions).start_time or "") == NOW + 1000
    assert status_of(actions).completion_time is None
    assert condition_of(decide(after(again, actions), NOW + 1061), "Succeeded").reason == "DeadlineExceeded"


def test_an_edit_that_is_no_new_training_does_not_move_the_deadline() -> None:
    first = world([job(completion={"deadlineSeconds": 60})], devices(WORK))
    begun = after(first, decide(first, NOW))
    edited = job(completion={"deadlineSeconds": 90}).spec
    longer = replace(begun, jobs=(replace(begun.jobs[0], generation=2, spec=edited),))
    assert seconds(status_of(decide(longer, NOW + 50)).start_time or "") == NOW
