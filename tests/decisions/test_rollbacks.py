"""Which request to roll back counts, how long it holds, and what the job says about it."""

from dataclasses import replace
from typing import Any

from hedgerow_operator.decide import decide
from hedgerow_operator.world import World
from hedgerow_plans.protocol.messages import Phase, RollbackRequest, RollbackResult
from support.worlds import NOW, after, condition_of, device, job, reported, shown, status_of, told, world


def request(request_id: str, to: str = "last") -> dict[str, Any]:
    return {"to": to, "requestId": request_id}


def carried_out(seen: World, now: float = NOW) -> World:
    return after(seen, decide(seen, now))


def edited_job(seen: World, generation: int, **spec: Any) -> World:
    return replace(seen, jobs=(replace(seen.jobs[0], generation=generation, spec=job(**spec).spec),))


def edited_device(seen: World, **spec: Any) -> World:
    first = seen.devices[0]
    return replace(seen, devices=(replace(first, spec=device(first.name, spec=spec).spec), *seen.devices[1:]))


def wanted(seen: World, name: str = "a") -> RollbackRequest | None:
    return told(decide(seen, NOW + 10), name).desired.rollback


def test_a_devices_own_request_reaches_only_that_device() -> None:
    seen = edited_device(carried_out(world([job()], [device("a"), device("b")])), rollback=request("r-1", "base"))
    assert wanted(seen) == RollbackRequest(to="base", request_id="r-1")
    assert wanted(seen, "b") is None
    assert shown(decide(seen, NOW), "a").status.rollback is not None
    assert shown(decide(seen, NOW), "a").status.columns.rollback == "Pending"


def test_a_jobs_request_reaches_every_device_and_is_no_new_training() -> None:
    begun = carried_out(world([job()], [device("a"), device("b")]))
    asked = edited_job(begun, 2, rollback={"request": request("r-1")})
    for name in ("a", "b"):
        desired = told(decide(asked, NOW), name).desired
        assert desired.rollback == RollbackRequest(to="last", request_id="r-1")
        assert desired.assignment is not None
        assert desired.assignment.generation == 1


def test_the_newest_request_wins_whoever_made_it() -> None:
    seen = carried_out(edited_device(carried_out(world([job()], [device("a")])), rollback=request("own-1")))
    seen = carried_out(edited_job(seen, 2, rollback={"request": request("job-1", "base")}))
    assert wanted(seen) == RollbackRequest(to="base", request_id="job-1")
    seen = carried_out(edited_device(seen, rollback=request("own-2", "previous")))
    assert wanted(seen) == RollbackRequest(to="previous", request_id="own-2")
    assert wanted(carried_out(seen)) == RollbackRequest(to="previous", request_id="own-2"), "and stays"


def test_a_release_names_the_request_whose_hold_ends() -> None:
    seen = carried_out(edited_device(carried_out(world([job()], [device("a")])), rollback=request("r-1")))
    released = edited_device(seen, rollback=request("r-1"), release={"requestId": "r-1"})
    assert wanted(released) == RollbackRequest(to="last", request_id="r-1", released=True)
    again = edited_device(carried_out(released), rollback=request("r-2"), release={"requestId": "r-1"})
    assert wanted(again) == RollbackRequest(to="last", request_id="r-2"), "a new request is a new hold"


def test_a_jobs_request_is_released_per_device() -> None:
    begun = carried_out(world([job()], [device("a"), device("b")]))
    asked = carried_out(edited_job(begun, 2, rollback={"request": request("r-1")}))
    released = edited_device(asked, release={"requestId": "r-1"})
    for_a, for_b = wanted(released, "a"), wanted(released, "b")
    assert for_a is not None
    assert for_b is not None
    assert (for_a.released, for_b.released) == (True, False)


def test_a_new_training_ends_every_request_for_old_and_new_devices() -> None:
    begun = carried_out(world([job()], [device("a")]))
    asked = carried_out(edited_job(begun, 2, rollback={"request": request("r-1")}))
    renewed = edited_job(asked, 3, rollback={"request": request("r-1")}, dataset="other")
    joined = replace(renewed, devices=(*renewed.devices, device("b")))
    assert wanted(joined, "a") is None
    assert wanted(joined, "b") is None


def test_a_device_that_joins_the_same_training_late_is_rolled_back_with_the_rest() -> None:
    begun = carried_out(world([job()], [device("a")]))
    asked = carried_out(edited_job(begun, 2, rollback={"request": request("r-1")}))
    assert wanted(replace(asked, devices=(*asked.devices, device("b"))), "b") is not None


def test_a_request_survives_a_pause() -> None:
    begun = carried_out(world([job()], [device("a")]))
    paused = carried_out(edited_job(begun, 2, suspend=True))
    asked = carried_out(edited_device(paused, rollback=request("r-1")))
    assert wanted(asked) is not None
    assert wanted(edited_job(asked, 3)) is not None, "resuming must not undo it"


def answers(**results: RollbackResult) -> World:
    """Return a job that asked for r-1, and devices that answered; PENDING stands for silence."""
    listed = []
    for name, result in results.items():
        said = {"request_id": "r-1", "result": result, "running": "base", "message": "words"}
        silent = result is RollbackResult.PENDING
        listed.append(device(name, reported=None if silent else reported(Phase.HELD, rollback=said)))
    begun = carried_out(world([job()], listed))
    return edited_job(begun, 2, rollback={"request": request("r-1")})


def test_the_job_says_when_all_obeyed() -> None:
    actions = decide(answers(a=RollbackResult.COMPLETE, b=RollbackResult.NO_STATE_CHANGE), NOW)
    condition = condition_of(actions, "RolledBack")
    assert (condition.status, condition.reason) == ("True", "Complete")
    assert condition.message == "2 of 2 devices obeyed request r-1 (to last)."
    assert status_of(actions).state == "RolledBack"


def test_the_job_says_whom_it_waits_for() -> None:
    condition = condition_of(decide(answers(a=RollbackResult.COMPLETE, b=RollbackResult.PENDING), NOW), "RolledBack")
    assert (condition.status, condition.reason) == ("Unknown", "Pending")
    assert condition.message == "1 of 2 devices obeyed request r-1 (to last); waiting for b."


def test_the_job_does_not_wait_for_devices_that_never_had_its_work() -> None:
    seen = answers(a=RollbackResult.COMPLETE)
    others = (device("shy", approved=False), device("old", kernel_table=99))
    condition = condition_of(decide(replace(seen, devices=(*seen.devices, *others)), NOW), "RolledBack")
    assert condition.message == "1 of 1 device obeyed request r-1 (to last)."


def test_the_job_says_who_could_not() -> None:
    condition = condition_of(decide(answers(a=RollbackResult.COMPLETE, b=RollbackResult.UNABLE), NOW), "RolledBack")
    assert (condition.status, condition.reason) == ("False", "Unable")
    assert condition.message == "1 device could not obey request r-1 (to last): b."


def test_the_devices_status_shows_what_it_runs() -> None:
    status = shown(decide(answers(a=RollbackResult.COMPLETE), NOW), "a").status
    assert status.rollback is not None
    assert (status.rollback.result, status.rollback.running, status.rollback.message) == ("Complete", "base", "words")
    assert status.state == "Held"


def said_by(seen: World, phase: Phase, **changes: Any) -> World:
    return replace(seen, devices=tuple(replace(one, reported=reported(phase, **changes)) for one in seen.devices))


def test_a_device_released_after_its_succeeded_job_was_rolled_back_trains_again() -> None:
    done = carried_out(said_by(carried_out(world([job()], [device("a")])), Phase.COMPLETED))
    assert done.jobs[0].status.state == "Succeeded"
    asked = carried_out(edited_job(done, 2, rollback={"request": request("r-1")}))
    obeyed = {"request_id": "r-1", "result": RollbackResult.COMPLETE, "running": "base"}
    held = carried_out(said_by(asked, Phase.HELD, rollback=obeyed))
    assert held.jobs[0].status.state == "RolledBack"
    released = carried_out(edited_device(held, release={"requestId": "r-1"}))
    for phase in (Phase.PREPARING, Phase.TRAINING):
        at_work = said_by(released, phase, rollback=obeyed)
        desired = told(decide(at_work, NOW + 10), "a").desired
        assert desired.assignment is not None, f"its work is not taken away while it is {phase}"
        assert desired.rollback is not None
        assert desired.rollback.released
