"""Topic names, built and parsed in one place.

The device id is in the topic, so that a few lines of a broker's access list confine each device to its own.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

ROOT = "hedgerow/v1"
_NAME = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DEVICE_TOPIC = re.compile(rf"^{ROOT}/(?P<fleet>{_NAME})/devices/(?P<device>{_NAME})/(?P<channel>[a-z]+)$")
_PROGRAM_TOPIC = re.compile(rf"^{ROOT}/(?P<fleet>{_NAME})/programs/(?P<digest>[0-9a-f]{{64}})/(?P<part>\d{{1,4}})$")


class Channel(StrEnum):
    """What is said on a device's topic."""

    DESIRED = "desired"  # operator to device: signed, retained
    REPORTED = "reported"  # device to operator: retained
    STATE = "state"  # birth and last will: retained
    TELEMETRY = "telemetry"  # periodic, QoS 0
    EVENTS = "events"
    DELTA = "delta"


@dataclass(frozen=True, slots=True)
class DeviceTopic:
    """A parsed device topic."""

    fleet: str
    device: str
    channel: Channel


@dataclass(frozen=True, slots=True)
class ProgramTopic:
    """A parsed program topic."""

    fleet: str
    digest: str
    part: int


def device_topic(fleet: str, device: str, channel: Channel) -> str:
    """Return the topic of one channel of one device; "+" for fleet or device makes a subscription."""
    return f"{ROOT}/{fleet}/devices/{device}/{channel}"


def program_topic(fleet: str, digest: str, part: int) -> str:
    """Return the topic of one part of a program."""
    return f"{ROOT}/{fleet}/programs/{digest}/{part}"


def parse(topic: str) -> DeviceTopic | ProgramTopic | None:
    """Return what a topic speaks of, or None if it is not one of ours."""
    if found := _DEVICE_TOPIC.match(topic):
        channel = found["channel"]
        return DeviceTopic(found["fleet"], found["device"], Channel(channel)) if channel in set(Channel) else None
    if found := _PROGRAM_TOPIC.match(topic):
        return ProgramTopic(found["fleet"], found["digest"], int(found["part"]))
    return None
