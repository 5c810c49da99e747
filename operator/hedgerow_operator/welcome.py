"""Devices become Device resources: at their birth, and again and again for as long as they are there without one.

A birth may come while the API server is away or the fleet is full, and a Device may be deleted while its device is
online; so who is there and has no Device is looked at from time to time, as if it had just been born.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from hedgerow_operator import births
from hedgerow_operator.kube import Body, ClusterError, Kube
from hedgerow_operator.registry import DeviceEntry, Key, Registry

MOST_AT_ONCE = 500
"""Devices that are looked at again in one go: the next list of the cluster should not wait for long."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Welcome:
    """Registers devices that introduce themselves."""

    registry: Registry
    kube: Kube
    max_devices: int
    approve: bool
    take_in: Callable[[Body], None]  # a Device that was made
    refused: Callable[[], None]  # counts devices for which there is no room

    async def greet(self, key: Key) -> None:
        """Create the Device of an unknown device, or bring the labels of a known one up to date."""
        entry = self.registry.devices.get(key)
        if entry is None or not _has_introduced_itself(entry):
            return
        if entry.uid:
            await self._relabel(key, entry)
        elif self._room() > 0:
            await self._register(key, entry)
        else:
            self.refused()
            _log.warning("Device %s/%s is not registered: there are %d already.", *key, self.max_devices)

    async def greet_waiting(self) -> None:
        """Greet whoever should have been greeted before; one that is refused does not keep the others waiting."""
        for key in self.waiting():
            try:
                await self.greet(key)
            except ClusterError as problem:
                _log.warning("Device %s/%s is not registered: %s", *key, problem)
                if problem.code is None:  # nobody answers
                    return

    def waiting(self) -> list[Key]:
        """Return who has no Device although there is room, or labels of an earlier birth; longest untried first."""
        there = {key: entry for key, entry in self.registry.devices.items() if _has_introduced_itself(entry)}
        unregistered = [key for key, entry in there.items() if not entry.uid]
        unregistered.sort(key=lambda key: (there[key].tried_at, key))
        changed = [key for key, entry in there.items() if _label_change(entry)]
        return (unregistered[: max(0, self._room())] + changed)[:MOST_AT_ONCE]

    def _room(self) -> int:
        return self.max_devices - self.registry.number_of_devices()

    async def _relabel(self, key: Key, entry: DeviceEntry) -> None:
        if change := _label_change(entry):
            await self.kube.patch("devices", *key, change)

    async def _register(self, key: Key, entry: DeviceEntry) -> None:
        if entry.state is None:
            return
        entry.is_being_created, entry.tried_at = True, time.monotonic()
        try:
            made = await self.kube.create(
                "devices", key[0], births.device_body(*key, entry.state, approved=self.approve)
            )
        finally:
            entry.is_being_created = False
        if made is not None:
            _log.info("Device %s/%s (%s) registered itself.", *key, entry.state.device_class)
            self.take_in(made)


def _has_introduced_itself(entry: DeviceEntry) -> bool:
    named = entry.state is not None and entry.state.device_class is not None
    return named and entry.is_there and not entry.is_being_created


def _label_change(entry: DeviceEntry) -> Body | None:
    if entry.spec is None or entry.state is None:
        return None
    return births.label_change(entry.labels, entry.state)
