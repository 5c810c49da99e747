"""What the registry makes of events and messages, which of them mean work, and when the watch counts as dead."""

from typing import Any

import pytest

from hedgerow_operator.births import claimed_labels, device_body, label_change
from hedgerow_operator.health import Health
from hedgerow_operator.inbox import Heard, hear
from hedgerow_operator.memories import read_device_memory, read_job_memory, write_memory
from hedgerow_operator.registry import Registry
from hedgerow_operator.survey import WatchMirror
from hedgerow_operator.world import DeviceMemory, JobMemory
from hedgerow_plans.protocol.messages import Message, Phase, RollbackRequest, State, Telemetry
from support.worlds import job_spec, progress, reported

TOPIC = "hedgerow/v1/north/devices/a/"


def body(generation: int = 1, **changes: Any) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "north", "uid": "u1", "generation": generation}
    spec = {"class": "board", "approved": True}
    return {"metadata": metadata | changes.pop("metadata", {}), "spec": spec | changes.pop("spec", {}), **changes}


def say(registry: Registry, channel: str, message: Message) -> Heard:
    return hear(registry, TOPIC + channel, message.model_dump_json().encode(), 1.0)[0]


def state(word: str, epoch: int = 1, **changes: Any) -> State:
    return State.model_validate({"state": word, "epoch": epoch, "device_class": "board"} | changes)


def test_a_status_write_is_no_work() -> None:
    registry = Registry()
    assert registry.put_device(body())
    assert not registry.put_device(body(status={"phase": "Training"}))
    assert registry.put_device(body(generation=2))
    assert registry.put_device(body(generation=2, metadata={"labels": {"site": "north"}}))


def test_a_jobs_status_that_arrives_late_does_not_undo_what_was_decided() -> None:
    registry = Registry()
    spec = job_spec().to_yaml_form()
    registry.put_job({"metadata": body()["metadata"], "spec": spec})
    registry.set_job(("north", "a"), memory=JobMemory(1, "d"))
    stale = {"metadata": body(generation=2)["metadata"], "spec": spec, "status": {"progressPercent": 1}}
    assert registry.put_job(stale)
    assert registry.jobs["north", "a"].memory == JobMemory(1, "d")
    assert registry.jobs["north", "a"].status.progress_percent == 0


def test_a_deleted_and_recreated_device_starts_anew_but_keeps_its_voice() -> None:
    registry = Registry()
    say(registry, "state", state("online"))
    registry.put_device(body())
    registry.devices["north", "a"].memory = DeviceMemory(sequence=9)
    assert registry.drop_device("north", "a")
    assert registry.put_device(body(metadata={"uid": "u2"}))
    entry = registry.devices["north", "a"]
    assert entry.memory == DeviceMemory()
    assert entry.state is not None


def test_a_device_that_does_not_parse_gets_no_work_and_breaks_nothing() -> None:
    registry = Registry()
    assert registry.put_device(body(spec={"class": 7}))
    assert registry.devices["north", "a"].spec is None


HOSTILE = [b"", b"{", b"[]", b'{"state": "online"}', b'{"kind": "reported", "epoch": -1}', b"\xff\xfe", b"1" * 5000]


@pytest.mark.parametrize("payload", HOSTILE)
@pytest.mark.parametrize("channel", ["state", "reported", "telemetry"])
def test_hostile_payloads_change_nothing(channel: str, payload: bytes) -> None:
    registry = Registry()
    heard, _ = hear(registry, TOPIC + channel, payload, 1.0)
    assert heard in {Heard.NOTHING, Heard.MALFORMED}
    assert not registry.devices


@pytest.mark.parametrize(
    "topic", ["other/topic", "hedgerow/v1/north/devices/a/desired", "hedgerow/v1/N/devices/a/state"]
)
def test_topics_that_are_not_for_us_are_passed_over(topic: str) -> None:
    assert hear(Registry(), topic, b"{}", 1.0) == (Heard.NOTHING, None) or topic.endswith("desired")


def test_the_will_of_an_older_connection_does_not_bury_a_living_device() -> None:
    registry = Registry()
    assert say(registry, "state", state("online", epoch=2)) is Heard.BIRTH
    assert say(registry, "state", State(state="lost", epoch=1)) is Heard.NOTHING
    assert say(registry, "state", State(state="lost", epoch=2)) is Heard.CHANGE
    lost = registry.devices["north", "a"].state
    assert lost is not None
    assert (lost.state, lost.device_class) == ("lost", "board"), "a will does not repeat the birth"


def test_a_device_whose_counter_was_lost_can_still_be_born() -> None:
    registry = Registry()
    say(registry, "state", state("online", epoch=9))
    assert say(registry, "state", state("online", epoch=1)) is Heard.BIRTH


def test_a_repeated_report_is_no_work_and_a_sample_is_not_urgent() -> None:
    registry = Registry()
    registry.put_device(body())
    report = reported(Phase.TRAINING, progress=progress(10))
    assert say(registry, "reported", report) is Heard.CHANGE
    assert say(registry, "reported", report) is Heard.NOTHING
    sample = Telemetry.model_validate(
        {"epoch": 1, "job_uid": "uid-drift", "phase": Phase.TRAINING, "progress": progress(20)}
    )
    assert say(registry, "telemetry", sample) is Heard.SAMPLE
    twin = registry.devices["north", "a"].twin()
    assert twin is not None
    assert twin.progress is not None
    assert twin.progress.step == 20


def test_a_sample_of_another_job_does_not_change_the_twin() -> None:
    registry = Registry()
    registry.put_device(body())
    say(registry, "reported", reported(Phase.TRAINING, progress=progress(10)))
    other = Telemetry.model_validate({"epoch": 1, "job_uid": "x", "phase": Phase.TRAINING, "progress": progress(20)})
    say(registry, "telemetry", other)
    assert registry.devices["north", "a"].twin() == registry.devices["north", "a"].reported


def say_as(registry: Registry, name: str, channel: str, message: Message) -> Heard:
    topic = f"hedgerow/v1/north/devices/{name}/{channel}"
    return hear(registry, topic, message.model_dump_json().encode(), 1.0)[0]


def test_of_a_device_without_a_resource_only_its_state_is_kept() -> None:
    registry = Registry()
    sample = Telemetry(epoch=1, phase=Phase.TRAINING)
    assert say(registry, "reported", reported(Phase.TRAINING)) is Heard.NOTHING
    assert say(registry, "telemetry", sample) is Heard.NOTHING
    assert not registry.devices, "a report alone is no device"
    say(registry, "state", state("online"))
    assert say(registry, "reported", reported(Phase.TRAINING)) is Heard.NOTHING
    entry = registry.devices["north", "a"]
    assert (entry.reported, entry.telemetry) == (None, None)
    registry.put_device(body())
    assert say(registry, "reported", reported(Phase.TRAINING)) is Heard.CHANGE
    assert registry.drop_device("north", "a")
    assert registry.devices["north", "a"].reported is None


def test_made_up_names_do_not_fill_the_memory() -> None:
    registry = Registry(most_unregistered=3)
    registry.put_device(body())
    heard = [say_as(registry, f"made-up-{number}", "state", state("online")) for number in range(10)]
    assert heard == [Heard.BIRTH] * 3 + [Heard.CROWDED] * 7
    assert len(registry.devices) == 4
    assert say_as(registry, "made-up-1", "state", state("lost")) is Heard.CHANGE
    assert say_as(registry, "real", "state", state("online")) is Heard.BIRTH, "one that is gone makes room"
    assert ("north", "made-up-1") not in registry.devices
    assert say(registry, "state", state("online")) is Heard.BIRTH, "one with a resource always has room"


def test_a_state_that_is_cleared_is_forgotten_if_nobody_registered_the_device() -> None:
    registry = Registry(most_unregistered=1)
    say(registry, "state", state("online"))
    hear(registry, TOPIC + "state", b"", 1.0)
    assert not registry.devices
    say(registry, "state", state("online"))
    registry.put_device(body())
    hear(registry, TOPIC + "state", b"", 1.0)
    assert registry.devices["north", "a"].spec is not None


def test_a_label_with_an_endless_name_is_refused() -> None:
    payload = b'{"state": "online", "epoch": 1, "labels": {"%s": "x"}}' % (b"n" * 318)
    assert hear(Registry(), TOPIC + "state", payload, 1.0)[0] is Heard.MALFORMED


def test_what_a_device_claims_is_kept_apart_and_must_be_a_label() -> None:
    claims = state(
        "online", labels={"site": "north", "device.hedgerow.dev/line": "1", "bad key": "x", "ok": "bad value"}
    )
    assert claimed_labels(claims) == {"device.hedgerow.dev/site": "north", "device.hedgerow.dev/line": "1"}
    made = device_body("north", "a", claims, approved=False)
    assert made["spec"] == {"class": "board", "approved": False}
    labels = {"team": "red", "device.hedgerow.dev/site": "south", "device.hedgerow.dev/old": "1"}
    assert label_change(labels, claims) == {
        "metadata": {
            "labels": {
                "device.hedgerow.dev/site": "north",
                "device.hedgerow.dev/line": "1",
                "device.hedgerow.dev/old": None,
            }
        }
    }
    assert label_change(claimed_labels(claims) | {"team": "red"}, claims) is None


def test_memories_survive_being_written_down() -> None:
    device = DeviceMemory(
        7, "ab", "uid", rollback=RollbackRequest(to="last", request_id="r"), rollback_assignment="u/1"
    )
    job = JobMemory(3, "digest", (("board", "plan"),), "r-1", 2)
    assert read_device_memory(write_memory(device)["metadata"]["annotations"]) == device
    assert read_job_memory(write_memory(job)["metadata"]["annotations"]) == job
    assert read_device_memory({"hedgerow.dev/memory": "broken"}) == DeviceMemory()
    assert read_job_memory({}) is None


def listed(uid: str, generation: int) -> dict[str, Any]:
    return {"uid": uid, "name": f"name-{uid}", "generation": generation}


def test_a_watch_that_missed_something_twice_is_dead() -> None:
    mirror = WatchMirror()
    mirror.saw(listed("u1", 1), deleted=False)
    mirror.compare([listed("u1", 1), listed("u2", 1)])
    assert not mirror.lagging, "the event may still be on its way"
    mirror.compare([listed("u1", 1), listed("u2", 1)])
    assert mirror.lagging == ["name-u2"]
    mirror.saw(listed("u2", 1), deleted=False)
    mirror.compare([listed("u1", 2), listed("u2", 1)])
    assert not mirror.lagging
    mirror.compare([listed("u1", 3), listed("u2", 1)])
    assert not mirror.lagging, "an object that changes all the time is not the same miss"


def test_a_watch_that_missed_a_deletion_is_dead() -> None:
    mirror = WatchMirror()
    mirror.saw(listed("u1", 1), deleted=False)
    mirror.compare([])
    mirror.compare([])
    assert mirror.lagging == ["u1"]


def test_health_forgives_a_moment() -> None:
    now = [0.0]
    health = Health(lambda: now[0], grace_seconds=10)
    health.note("broker", "The broker is away.")
    assert health.problems() == []
    assert health.problems(at_once=True) == ["The broker is away. (for 0 s)"]
    now[0] = 11.0
    health.note("broker", "The broker is away.")
    assert health.problems() == ["The broker is away. (for 11 s)"]
    health.note("broker", None)
    assert health.problems() == []
