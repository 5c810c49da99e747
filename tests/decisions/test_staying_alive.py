"""What runs from start to stop: one object that goes wrong does not end it, and an end does not go unnoticed."""

import asyncio
import logging

import pytest

from hedgerow_operator.health import Health
from hedgerow_operator.schedule import Schedule
from hedgerow_operator.writing import StatusWriter
from support.small_cluster import SmallCluster
from support.worlds import FLEET


def cluster_with(*names: str) -> SmallCluster:
    cluster = SmallCluster()
    for name in names:
        cluster.objects["devices", name] = {"metadata": {"name": name}}
    return cluster


async def a_moment() -> None:
    await asyncio.sleep(0.3)


def test_a_status_that_cannot_be_written_does_not_end_the_writing_of_others(caplog: pytest.LogCaptureFixture) -> None:
    cluster = cluster_with("odd", "a", "b")
    cluster.refused["odd"] = ValueError("a surprise")

    async def run() -> StatusWriter:
        writer = StatusWriter(cluster)
        writer.want(("devices", FLEET, "odd"), {"phase": "Training"})
        writer.want(("devices", FLEET, "a"), {"phase": "Training"})
        writer.start()
        await a_moment()
        writer.want(("devices", FLEET, "b"), {"phase": "Training"})
        await a_moment()
        assert not writer.tasks()[0].done()
        await writer.stop()
        return writer

    asyncio.run(run())
    assert cluster.objects["devices", "a"]["status"] == {"phase": "Training"}
    assert cluster.objects["devices", "b"]["status"] == {"phase": "Training"}
    assert "a surprise" in caplog.text


def test_a_status_is_written_when_the_surprise_is_over() -> None:
    cluster = cluster_with("odd")
    cluster.refused["odd"] = ValueError("a surprise")

    async def run() -> None:
        writer = StatusWriter(cluster)
        writer.want(("devices", FLEET, "odd"), {"phase": "Training"})
        writer.start()
        await a_moment()
        cluster.refused.clear()
        await writer.stop()

    asyncio.run(run())
    assert cluster.objects["devices", "odd"]["status"] == {"phase": "Training"}


def test_a_fleet_that_goes_wrong_does_not_keep_the_others_and_an_errand_does_not_vanish(
    caplog: pytest.LogCaptureFixture,
) -> None:
    looked: list[str] = []

    async def reconcile(fleet: str) -> None:
        if fleet == "odd":
            raise ValueError("a surprise")
        looked.append(fleet)

    async def errand() -> None:
        raise ValueError("another surprise")

    async def run() -> None:
        schedule = Schedule(reconcile)
        schedule.start()
        schedule.soon(errand())
        for fleet in ("odd", "north"):
            schedule.mark(fleet, 0.0)
        await a_moment()
        assert [task.get_name() for task in schedule.tasks()] == ["schedule"]
        assert not schedule.tasks()[0].done()
        await schedule.stop()

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert looked == ["north"]
    assert "another surprise" in caplog.text


def test_a_task_that_has_ended_is_said_to_have() -> None:
    async def ends() -> None:
        raise ValueError("a surprise")

    async def run() -> None:
        health = Health(lambda: 0.0, grace_seconds=0)
        writer = StatusWriter(cluster_with())
        writer.start()
        health.note_tasks(writer.tasks())
        assert health.problems() == []
        dead = asyncio.create_task(ends(), name="schedule")
        await asyncio.gather(dead, return_exceptions=True)
        health.note_tasks([*writer.tasks(), dead])
        assert health.problems() == ["The task schedule has ended; the log says why. (for 0 s)"]
        writer.tasks()[0].cancel()
        await asyncio.gather(*writer.tasks(), return_exceptions=True)
        health.note_tasks(writer.tasks())
        assert health.problems() == ["The task status-writer has ended; the log says why. (for 0 s)"]

    asyncio.run(run())
