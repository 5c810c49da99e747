"""Which programs of the cluster are used again: those that were settled, and those that are what was asked for."""

import asyncio
import dataclasses
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

from hedgerow_operator.planning import storage
from hedgerow_operator.planning.memo import Memo
from hedgerow_operator.planning.programs import Place, Programs
from hedgerow_operator.planning.requests import plan_name, program_key, program_request
from hedgerow_operator.planning.worker import Planned, Unusable, check, plan
from hedgerow_operator.world import Job, JobMemory, Ready
from hedgerow_plans import codec
from hedgerow_plans.methods.selection import Last
from hedgerow_plans.program import ProgramRequest
from hedgerow_plans.resources.device_class import DeviceClassSpec
from hedgerow_plans.training.optimizers import Sgd
from support.small_cluster import SmallCluster
from support.worlds import BOARD, FLEET, job, job_spec

REQUEST = program_request(job_spec(), "board", BOARD)
KEY = program_key(REQUEST)
NAME = plan_name(REQUEST, KEY)
BIGGER = DeviceClassSpec.model_validate({"memory": {"budget": "512Ki"}, "compute": BOARD.compute.to_yaml_form()})
_T = TypeVar("_T")


@cache
def planned(request: ProgramRequest = REQUEST) -> Planned:
    made = plan(request, 60)
    assert isinstance(made, Planned)
    return made


class ProgramsOfOneProcess(Programs):
    """Plans where it stands; the pool of processes has its own tests, in a real operator."""

    async def _submit(self, call: Callable[..., _T], *arguments: object) -> _T:
        return call(*arguments)


@dataclasses.dataclass
class Outcome:
    """What came of asking for a program, and how it was come by."""

    state: object
    ways: list[str]
    memo: Memo

    @property
    def digest(self) -> str:
        assert isinstance(self.state, Ready), self.state
        return self.state.reference.digest


def asked(cluster: SmallCluster, folder: Path, one: Job, device_class: DeviceClassSpec | None = BOARD) -> Outcome:
    ways: list[str] = []
    memo = Memo(folder)

    async def run() -> object:
        programs = ProgramsOfOneProcess(cluster, memo, 1, 60, lambda _, outcome, __: ways.append(outcome))
        place, done = Place(FLEET, one.uid, 1, "board"), asyncio.Event()
        programs.ask(place, one, device_class, done.set)
        await done.wait()
        return programs.state(place)

    return Outcome(asyncio.run(run()), ways, memo)


def kept(cluster: SmallCluster, program: Planned, name: str = NAME, key: str = KEY, **changes: Any) -> SmallCluster:
    owner = storage.job_owner("other", "uid-other")
    asyncio.run(storage.keep(cluster, FLEET, storage.Kept(name, key, program), owner))
    cluster.objects["executionplans", name]["spec"] |= changes
    return cluster


def test_what_was_kept_is_used_again(tmp_path: Path) -> None:
    found = asked(kept(SmallCluster(), planned()), tmp_path, job())
    assert (found.digest, found.ways) == (planned().summary.digest, ["loaded"])
    assert found.memo.read(KEY) == planned().encoded


OTHERS = {
    "another method": replace(REQUEST, method=Last()),
    "another optimizer": replace(REQUEST, optimizer=Sgd(momentum=0.9)),
    "another batch size": replace(REQUEST, batch_size=8),
    "another class of devices": replace(REQUEST, device_class="other"),
    "more memory than the budget": replace(REQUEST, budget_bytes=512 * 1024, batch_size=16),
    "weights outside the arena": replace(REQUEST, frozen_outside=True),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_another_program_planted_under_the_name_and_key_is_made_again(other: ProgramRequest, tmp_path: Path) -> None:
    request = REQUEST
    if other.budget_bytes > REQUEST.budget_bytes:
        request = replace(REQUEST, budget_bytes=planned().summary.peak_bytes - 1)
    small = DeviceClassSpec.model_validate(
        {"memory": {"budget": str(request.budget_bytes)}, "compute": BOARD.compute.to_yaml_form()}
    )
    key = program_key(request)
    cluster = kept(SmallCluster(), planned(other), plan_name(request, key), key)
    found = asked(cluster, tmp_path, job(), small)
    assert (found.digest, found.ways) == (planned(request).summary.digest, ["planned"])
    assert cluster.objects["executionplans", plan_name(request, key)]["spec"]["digest"] == found.digest
    assert asked(cluster, tmp_path, job(), small).ways == ["loaded"], "what was planted is gone"


LIES: list[dict[str, Any]] = [{"key": "f" * 64}, {"model": "cnn-small"}, {"batchSize": 1}, {"floorBytes": 1}]


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: next(iter(lie)))
def test_a_summary_that_is_not_that_of_its_program_is_made_again(lie: dict[str, Any], tmp_path: Path) -> None:
    cluster = kept(SmallCluster(), planned(), **lie)
    found = asked(cluster, tmp_path, job())
    assert (found.digest, found.ways) == (planned().summary.digest, ["planned"])
    spec = cluster.objects["executionplans", NAME]["spec"]
    assert {name: spec[name] for name in lie} != lie


def test_the_memo_is_never_written_under_a_key_that_the_cluster_names(tmp_path: Path) -> None:
    found = asked(kept(SmallCluster(), planned(OTHERS["another method"]), key="f" * 64), tmp_path, job())
    assert found.memo.read("f" * 64) is None
    assert found.memo.read(KEY) == planned().encoded


def test_a_damaged_memo_is_compared_with_what_was_asked_for(tmp_path: Path) -> None:
    Memo(tmp_path).write(KEY, planned(OTHERS["another method"]).encoded)
    assert asked(SmallCluster(), tmp_path, job()).digest == planned().summary.digest


def settled(digest: str | None) -> Job:
    digests = (("board", digest),) if digest else ()
    return replace(job(), memory=JobMemory(1, "d", (("board", NAME),), digests=digests))


@pytest.mark.parametrize("edited", [BIGGER, None])
def test_a_settled_program_outlives_an_edit_of_its_class(edited: DeviceClassSpec | None, tmp_path: Path) -> None:
    found = asked(kept(SmallCluster(), planned()), tmp_path, settled(planned().summary.digest), edited)
    assert (found.digest, found.ways) == (planned().summary.digest, ["loaded"])


def test_another_program_under_the_name_of_the_settled_one_is_not_used(tmp_path: Path) -> None:
    cluster = kept(SmallCluster(), planned(OTHERS["another optimizer"]))
    found = asked(cluster, tmp_path, settled(planned().summary.digest), BIGGER)
    wanted = planned(program_request(job_spec(), "board", BIGGER))
    assert (found.digest, found.ways) == (wanted.summary.digest, ["planned"])


def test_a_part_that_somebody_else_wrote_makes_way(tmp_path: Path) -> None:
    cluster = SmallCluster()
    cluster.objects["configmaps", f"{NAME}-0"] = {"metadata": {"name": f"{NAME}-0"}, "binaryData": {}}
    asked(cluster, tmp_path, job())
    assert asked(cluster, tmp_path, job()).ways == ["loaded"]


def test_a_check_names_what_is_different() -> None:
    found = check(planned(OTHERS["another batch size"]).encoded, REQUEST)
    assert isinstance(found, Unusable)
    assert found.message.startswith("The program is not what was asked for; it has another batch size")
    assert isinstance(check(codec.encode(codec.decode(planned().encoded)), REQUEST), Planned)
