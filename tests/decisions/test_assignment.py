"""Who is told what: selection, one job per device, documents and their numbers."""

from dataclasses import replace

import pytest

from hedgerow_operator.actions import Dispatch, PlanProgram, RememberJob
from hedgerow_operator.decide import decide
from hedgerow_operator.world import DeviceMemory, Impossible, Underway
from hedgerow_plans.plan import KERNEL_TABLE
from hedgerow_plans.protocol.messages import Phase
from hedgerow_plans.resources.device_class import DeviceClassSpec
from hedgerow_plans.resources.reasons import PlannedReason
from support.worlds import BOARD, NOW, after, all_of, condition_of, device, job, reported, shown, told, world

NORTH = {"site": "north"}

SELECTORS = {
    "an empty selector takes every device": ({}, {"a", "b", "c"}),
    "matchLabels must all hold": ({"matchLabels": {"site": "north", "line": "1"}}, {"a"}),
    "In": ({"matchExpressions": [{"key": "site", "operator": "In", "values": ["north", "moon"]}]}, {"a", "b"}),
    "NotIn takes devices without the label": (
        {"matchExpressions": [{"key": "site", "operator": "NotIn", "values": ["north"]}]},
        {"c"},
    ),
    "Exists": ({"matchExpressions": [{"key": "line", "operator": "Exists"}]}, {"a"}),
    "DoesNotExist": ({"matchExpressions": [{"key": "site", "operator": "DoesNotExist"}]}, {"c"}),
}


@pytest.mark.parametrize(("selector", "wanted"), SELECTORS.values(), ids=SELECTORS)
def test_devices_are_selected_by_their_labels(selector: dict[str, object], wanted: set[str]) -> None:
    devices = [
        device("a", labels={"site": "north", "line": "1"}),
        device("b", labels=NORTH),
        device("c", labels={"device.hedgerow.dev/site": "north"}),
    ]
    actions = decide(world([job(devices={"selector": selector})], devices), NOW)
    assert {d.device for d in all_of(actions, Dispatch) if d.desired.assignment} == wanted


def test_an_unapproved_device_is_told_nothing() -> None:
    actions = decide(world([job()], [device("shy", approved=False)]), NOW)
    assert not all_of(actions, Dispatch)
    assert not all_of(actions, PlanProgram)
    assert shown(actions, "shy").status.reason == "NotApproved"


def test_a_device_whose_approval_is_withdrawn_is_stopped() -> None:
    before = device("a", approved=False, memory=DeviceMemory(sequence=5, job_uid="uid-drift"))
    assert told(decide(world([job()], [before]), NOW), "a").desired.assignment is None


def test_a_program_is_asked_for_once_per_class_of_approved_devices() -> None:
    devices = [
        device("a"),
        device("b"),
        device("c", device_class="big"),
        device("d", device_class="no", approved=False),
    ]
    actions = decide(world([job()], devices, programs={}), NOW)
    assert all_of(actions, PlanProgram) == [PlanProgram("drift", "big"), PlanProgram("drift", "board")]
    assert all(dispatch.desired.assignment is None for dispatch in all_of(actions, Dispatch))


def test_the_older_job_has_the_device_and_the_other_says_that_it_waits() -> None:
    jobs = [job("young", created="2026-11-17T11:00:00Z"), job("old", created="2026-11-17T10:00:00Z")]
    actions = decide(world(jobs, [device("a")]), NOW)
    assignment = told(actions, "a").desired.assignment
    assert assignment is not None
    assert assignment.job_name == "old"
    waiting = condition_of(actions, "Progressing", "young")
    assert (waiting.status, waiting.reason) == ("False", "DevicesBusy")
    assert waiting.message == "Waiting for 1 device at work for another job: a (old)."


def test_a_device_at_work_is_not_taken_away_by_an_older_job() -> None:
    jobs = [job("young", created="2026-11-17T11:00:00Z"), job("old", created="2026-11-17T10:00:00Z")]
    at_work = device("a", memory=DeviceMemory(sequence=5, job_uid="uid-young"))
    assignment = told(decide(world(jobs, [at_work]), NOW), "a").desired.assignment
    assert assignment is not None
    assert assignment.job_name == "young"


ENDS = [Phase.COMPLETED, Phase.FAILED, Phase.REJECTED]


@pytest.mark.parametrize("phase", ENDS)
def test_a_device_that_is_done_goes_to_the_next_job(phase: Phase) -> None:
    jobs = [job("drift"), job("next", created="2026-11-17T11:00:00Z")]
    done = device("a", reported=reported(phase), memory=DeviceMemory(sequence=5, job_uid="uid-drift"))
    assignment = told(decide(world(jobs, [done]), NOW), "a").desired.assignment
    assert assignment is not None
    assert assignment.job_name == "next"


def test_a_device_that_is_done_and_not_needed_keeps_its_assignment() -> None:
    done = device("a", reported=reported(Phase.COMPLETED), memory=DeviceMemory(sequence=5, job_uid="uid-drift"))
    assert told(decide(world([job()], [done]), NOW), "a").desired.assignment is not None


def test_a_held_device_waits_for_its_release_even_if_another_job_wants_it() -> None:
    jobs = [job("drift"), job("next", created="2026-11-17T11:00:00Z")]
    held = device("a", reported=reported(Phase.HELD), memory=DeviceMemory(sequence=5, job_uid="uid-drift"))
    actions = decide(world(jobs, [held]), NOW)
    assignment = told(actions, "a").desired.assignment
    assert assignment is not None
    assert assignment.job_name == "drift"
    assert condition_of(actions, "Progressing", "next").reason == "DevicesBusy"


def test_a_suspended_job_stops_its_devices_and_resuming_is_not_a_new_training() -> None:
    first = world([job()], [device("a")])
    begun = after(first, decide(first, NOW))
    paused = replace(begun, jobs=(replace(begun.jobs[0], generation=2, spec=job(suspend=True).spec),))
    actions = decide(paused, NOW + 1)
    assert told(actions, "a").desired.assignment is None
    assert condition_of(actions, "Suspended").status == "True"
    stopped = after(paused, actions)
    resumed = replace(stopped, jobs=(replace(stopped.jobs[0], generation=3, spec=job().spec),))
    assignment = told(decide(resumed, NOW + 2), "a").desired.assignment
    assert assignment is not None
    assert assignment.generation == 1


def test_a_changed_training_is_a_new_generation() -> None:
    first = world([job()], [device("a")])
    begun = after(first, decide(first, NOW))
    edited = job(generation=2, dataset="other").spec
    changed = replace(begun, jobs=(replace(begun.jobs[0], generation=2, spec=edited),))
    actions = decide(changed, NOW + 1)
    assignment = told(actions, "a").desired.assignment
    assert assignment is not None
    assert assignment.generation == 2
    (remembered,) = all_of(actions, RememberJob)
    assert remembered.memory.generation == 2


def test_allowance_and_override_reach_the_device_without_a_new_program() -> None:
    squeezed = DeviceClassSpec.model_validate(
        {"memory": {"budget": "256Ki", "allowance": "40Ki"}, "compute": BOARD.compute.to_yaml_form()}
    )
    one = device("a", spec={"memoryOverride": "30Ki"})
    desired = told(decide(world([job()], [one], classes={"board": squeezed}), NOW), "a").desired
    assert (desired.allowance_bytes, desired.override_bytes) == (40 * 1024, 30 * 1024)


def test_numbers_only_grow_and_change_only_with_the_document() -> None:
    first = world([job()], [device("a")])
    actions = decide(first, NOW)
    number = told(actions, "a").memory.sequence
    assert number == int(NOW) + 1, "a device without a record starts from the clock"
    later = after(first, actions)
    again = told(decide(later, NOW + 100), "a")
    assert again.memory.sequence == number, "the same document keeps its number"
    assert again.desired == told(actions, "a").desired
    stopped = replace(later, jobs=())
    assert told(decide(stopped, NOW - 10_000), "a").memory.sequence == number + 1, "even if the clock went back"


def test_a_device_that_has_seen_a_higher_number_gets_a_higher_one_still() -> None:
    ahead = device("a", memory=DeviceMemory(sequence=5), reported=reported(Phase.IDLE, observed_sequence=41))
    assert told(decide(world([], [ahead]), NOW), "a").memory.sequence == 42


def test_a_device_that_claims_an_absurd_number_is_not_believed() -> None:
    liar = device("a", memory=DeviceMemory(sequence=5), reported=reported(Phase.IDLE, observed_sequence=2**53))
    assert told(decide(world([], [liar]), NOW), "a").memory.sequence == 6


def test_while_a_program_is_read_back_the_device_is_left_alone() -> None:
    one = job()
    at_work = device("a", memory=DeviceMemory(sequence=5, job_uid=one.uid))
    actions = decide(world([one], [at_work], programs={(one.uid, "board"): Underway()}), NOW)
    assert not all_of(actions, Dispatch)


def test_a_device_of_a_deleted_job_is_stopped_even_while_its_next_program_is_planned() -> None:
    one = job("next")
    orphan = device("a", memory=DeviceMemory(sequence=5, job_uid="uid-deleted"))
    actions = decide(world([one], [orphan], programs={(one.uid, "board"): Underway()}), NOW)
    assert told(actions, "a").desired.assignment is None


def test_an_agent_of_another_kernel_table_gets_no_work_and_is_named() -> None:
    actions = decide(world([job()], [device("old", kernel_table=99), device("new")]), NOW)
    assert told(actions, "old").desired.assignment is None
    assert told(actions, "new").desired.assignment is not None
    assert shown(actions, "old").status.state == "Unsupported"
    sentence = f"speaks kernel table 99, and this operator writes kernel table {KERNEL_TABLE}"
    assert f"old: its agent (version 0.1.0) {sentence}" in condition_of(actions, "Planned").message


def test_a_class_that_cannot_be_planned_does_not_keep_the_others() -> None:
    one = job()
    programs = dict(world([one]).programs) | {
        (one.uid, "small"): Impossible(PlannedReason.BUDGET_TOO_SMALL, "Nothing fits device class small.")
    }
    devices = [device("a"), device("b", device_class="small")]
    actions = decide(world([one], devices, programs=programs), NOW)
    assert told(actions, "a").desired.assignment is not None
    assert told(actions, "b").desired.assignment is None
    assert condition_of(actions, "Planned").reason == "BudgetTooSmall"


def test_an_unchanged_document_gets_a_new_number_if_the_device_has_seen_a_higher_one() -> None:
    first = world([job()], [device("a")])
    sent = after(first, decide(first, NOW))
    number = sent.devices[0].memory.sequence
    ahead = replace(sent.devices[0], reported=reported(Phase.TRAINING, observed_sequence=number + 7))
    assert told(decide(replace(sent, devices=(ahead,)), NOW), "a").memory.sequence == number + 8


def test_a_held_device_stays_held_even_if_its_job_is_suspended_and_another_wants_it() -> None:
    jobs = [job("drift", suspend=True), job("next", created="2026-11-17T11:00:00Z")]
    held = device("a", reported=reported(Phase.HELD), memory=DeviceMemory(sequence=5, job_uid="uid-drift"))
    assignment = told(decide(world(jobs, [held]), NOW), "a").desired.assignment
    assert assignment is not None
    assert assignment.job_name == "drift"
