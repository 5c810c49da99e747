"""A list that took long, and an event that came late, do not undo what is known already."""

from typing import Any

import pytest

from hedgerow_operator.recency import Recency
from hedgerow_operator.registry import Registry
from support.worlds import BOARD, FLEET, job_spec


def metadata(version: int | None, generation: int = 1, uid: str = "u1", **changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {"name": "a", "namespace": FLEET, "uid": uid, "generation": generation}
    return values | ({} if version is None else {"resourceVersion": str(version)}) | changes


def a_job(version: int | None, generation: int = 1, uid: str = "u1", dataset: str = "digits") -> dict[str, Any]:
    return {"metadata": metadata(version, generation, uid), "spec": job_spec(dataset=dataset).to_yaml_form()}


def a_device(version: int | None, generation: int = 1, **changes: Any) -> dict[str, Any]:
    spec = {"class": "board", "approved": changes.pop("approved", True)}
    return {"metadata": metadata(version, generation, **changes), "spec": spec}


@pytest.mark.parametrize(("older", "newer"), [(9, 10), (None, None), (None, 10)])
def test_an_older_generation_of_a_job_is_not_taken_back(older: int | None, newer: int | None) -> None:
    registry = Registry()
    registry.put_job(a_job(newer, generation=2, dataset="new"))
    assert not registry.put_job(a_job(older, generation=1, dataset="old"))
    spec = registry.jobs[FLEET, "a"].spec
    assert spec is not None
    assert (spec.dataset, registry.jobs[FLEET, "a"].generation) == ("new", 2)


def test_neither_an_older_spec_nor_older_labels_of_a_device_are_taken_back() -> None:
    registry = Registry()
    registry.put_device(a_device(11, generation=2, labels={"site": "north"}, approved=False))
    assert not registry.put_device(a_device(10, generation=1, approved=True))
    assert not registry.put_device(a_device(10, generation=2, labels={"site": "south"}, approved=False))
    entry = registry.devices[FLEET, "a"]
    assert entry.spec is not None
    assert (entry.spec.approved, entry.labels) == (False, {"site": "north"})


def test_an_older_budget_of_a_class_is_not_taken_back() -> None:
    registry = Registry()
    smaller = BOARD.to_yaml_form() | {"memory": {"budget": "64Ki"}}
    registry.put_class({"metadata": metadata(11, generation=2), "spec": smaller})
    assert not registry.put_class({"metadata": metadata(10), "spec": BOARD.to_yaml_form()})
    assert registry.classes["a"].budget_bytes == 64 * 1024


def test_a_deleted_job_is_not_brought_back_by_the_list_that_had_begun_before() -> None:
    registry = Registry()
    registry.put_job(a_job(10))
    registry.recency.list_begins()
    registry.recency.went("u1")
    registry.drop_job(FLEET, "a")
    assert not registry.put_job(a_job(10))
    assert not registry.jobs


def test_a_new_object_under_the_name_of_a_deleted_one_is_taken_in() -> None:
    registry = Registry()
    registry.put_job(a_job(10))
    registry.recency.went("u1")
    registry.drop_job(FLEET, "a")
    assert registry.put_job(a_job(12, uid="u2"))
    assert registry.is_another("trainingjobs", (FLEET, "a"), "u1"), "the old one's end is not its end"
    assert not registry.is_another("trainingjobs", (FLEET, "a"), "u2")


def test_what_has_gone_is_not_remembered_for_ever() -> None:
    registry = Registry()
    for number in range(100):
        registry.put_job(a_job(number, uid=f"u{number}"))
        registry.recency.went(f"u{number}")
    registry.recency.list_begins()
    registry.recency.list_begins()
    assert registry.recency == Recency()


@pytest.mark.parametrize("kind", ["devices", "deviceclasses"])
def test_the_end_of_a_replaced_object_is_not_the_end_of_its_successor(kind: str) -> None:
    registry = Registry()
    if kind == "devices":
        registry.put_device(a_device(12, uid="u2"))
    else:
        registry.put_class({"metadata": metadata(12, uid="u2"), "spec": BOARD.to_yaml_form()})
    assert registry.is_another(kind, (FLEET, "a"), "u1")
