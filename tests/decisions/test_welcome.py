"""Who gets a Device: at birth, and later if the birth came at a bad time."""

import asyncio
from collections.abc import Callable
from typing import Any

from hedgerow_operator.inbox import hear
from hedgerow_operator.kube import ClusterError
from hedgerow_operator.registry import Registry
from hedgerow_operator.welcome import Welcome
from hedgerow_plans.protocol.messages import State
from support.small_cluster import SmallCluster
from support.worlds import FLEET


class Fleet:
    """A registry, a cluster, and devices that introduce themselves."""

    def __init__(self, max_devices: int = 10) -> None:
        self.registry, self.cluster = Registry(), SmallCluster()
        self.refusals: list[None] = []
        take_in: Callable[[dict[str, Any]], object] = self.registry.put_device
        self.welcome = Welcome(
            self.registry,
            self.cluster,
            max_devices,
            approve=True,
            take_in=lambda made: (take_in(made), None)[1],
            refused=lambda: self.refusals.append(None),
        )

    def born(self, name: str, word: str = "online", **labels: str) -> None:
        """Have a device introduce itself, and greet it; the cluster may be away."""
        state = State.model_validate({"state": word, "epoch": 1, "device_class": "board", "labels": labels})
        hear(self.registry, f"hedgerow/v1/{FLEET}/devices/{name}/state", state.model_dump_json().encode(), 1.0)
        try:
            asyncio.run(self.welcome.greet((FLEET, name)))
        except ClusterError:
            assert self.cluster.is_away or name in self.cluster.refused

    def look_again(self) -> None:
        asyncio.run(self.welcome.greet_waiting())

    @property
    def registered(self) -> set[str]:
        return {name for kind, name in self.cluster.objects if kind == "devices"}

    def delete(self, name: str) -> None:
        del self.cluster.objects["devices", name]
        self.registry.recency.went(self.registry.devices[FLEET, name].uid)
        self.registry.drop_device(FLEET, name)


def test_a_birth_becomes_a_device() -> None:
    fleet = Fleet()
    fleet.born("a")
    assert fleet.registered == {"a"}
    assert fleet.registry.devices[FLEET, "a"].spec is not None
    assert fleet.welcome.waiting() == []


def test_a_birth_while_the_cluster_was_away_is_made_up_for() -> None:
    fleet = Fleet()
    fleet.cluster.is_away = True
    fleet.born("a")
    fleet.look_again()
    assert not fleet.registered
    fleet.cluster.is_away = False
    fleet.look_again()
    assert fleet.registered == {"a"}


def test_a_device_that_found_no_room_is_registered_when_there_is_some() -> None:
    fleet = Fleet(max_devices=1)
    for name in ("a", "b", "c"):
        fleet.born(name)
    fleet.look_again()
    assert (fleet.registered, len(fleet.refusals)) == ({"a"}, 2), "and looking again is no new refusal"
    fleet.born("a", "offline")
    fleet.delete("a")
    fleet.look_again()
    assert fleet.registered == {"b"}


def test_a_device_that_had_its_turn_waits_behind_those_that_had_none() -> None:
    fleet = Fleet(max_devices=1)
    fleet.born("a")
    fleet.born("b")
    fleet.delete("a")
    fleet.look_again()
    assert fleet.registered == {"b"}


def test_a_device_whose_resource_is_deleted_while_it_is_there_is_registered_again() -> None:
    fleet = Fleet()
    fleet.born("a")
    del fleet.cluster.objects["devices", "a"]
    fleet.registry.drop_device(FLEET, "a")
    fleet.look_again()
    assert fleet.registered == {"a"}


def test_a_device_that_is_gone_is_not_registered() -> None:
    fleet = Fleet()
    fleet.born("a", "offline")
    fleet.look_again()
    assert not fleet.registered


def test_one_device_that_the_cluster_refuses_does_not_keep_the_others() -> None:
    fleet = Fleet()
    fleet.cluster.is_away = True
    for name in ("a", "b"):
        fleet.born(name)
    fleet.cluster.is_away = False
    fleet.cluster.refused["a"] = ClusterError("The API server refused.", 422)
    fleet.look_again()
    assert fleet.registered == {"b"}


def test_labels_of_a_birth_that_the_cluster_missed_are_made_up_for() -> None:
    fleet = Fleet()
    fleet.born("a", site="north")
    fleet.cluster.is_away = True
    fleet.born("a", site="south")
    fleet.cluster.is_away = False
    fleet.look_again()
    labels = fleet.cluster.objects["devices", "a"]["metadata"]["labels"]
    assert labels == {"device.hedgerow.dev/site": "south"}


def test_a_device_whose_resource_does_not_parse_is_not_created_again() -> None:
    fleet = Fleet()
    body = {"metadata": {"name": "a", "namespace": FLEET, "uid": "u1", "generation": 1}, "spec": {"class": 7}}
    fleet.registry.put_device(body)
    fleet.born("a")
    assert fleet.welcome.waiting() == []
    assert not fleet.registered
