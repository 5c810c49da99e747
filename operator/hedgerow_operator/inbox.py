"""What devices say: payloads from the broker become typed messages in the registry, or are counted as malformed.

Of a device without a Device only its state is kept, and only of so many: topics are names that anybody can make up.
Its report is retained at the broker, and is asked for again when the device is registered.
"""

import logging
from enum import Enum, auto

from pydantic import ValidationError

from hedgerow_operator.registry import DeviceEntry, Registry
from hedgerow_plans.protocol.messages import Message, Reported, State, Telemetry
from hedgerow_plans.protocol.topics import Channel, DeviceTopic, parse

KINDS: dict[Channel, type[Message]] = {
    Channel.STATE: State,
    Channel.REPORTED: Reported,
    Channel.TELEMETRY: Telemetry,
}
_log = logging.getLogger(__name__)


class Heard(Enum):
    """What a message changes."""

    NOTHING = auto()
    SAMPLE = auto()  # a moment's figures: worth showing, not worth hurrying
    CHANGE = auto()
    BIRTH = auto()  # a change, from a device that is there now
    MALFORMED = auto()
    CROWDED = auto()  # the birth of a device for which there is no room, not even to remember it


def hear(registry: Registry, topic: str, payload: bytes, now: float) -> tuple[Heard, DeviceTopic | None]:
    """Take in one message; hostile payloads change nothing."""
    parsed = parse(topic)
    if not isinstance(parsed, DeviceTopic) or parsed.channel not in KINDS:
        return Heard.NOTHING, None
    key = (parsed.fleet, parsed.device)
    if not payload:  # a retained message was cleared
        if parsed.channel is Channel.STATE:
            registry.forget_unregistered(key)
        return Heard.NOTHING, parsed
    try:
        message = KINDS[parsed.channel].model_validate_json(payload)
    except ValidationError as problem:
        detail = problem.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in detail["loc"]) or "the document"
        _log.warning("The message on %s was not understood: %s: %s.", topic, where, detail["msg"])
        return Heard.MALFORMED, parsed
    known = registry.devices.get(key)
    if not isinstance(message, State) and (known is None or not known.uid):
        return Heard.NOTHING, parsed
    entry = registry.entry_for(key)
    return (_take_in(entry, message, now) if entry else Heard.CROWDED), parsed


def _take_in(entry: DeviceEntry, message: Message, now: float) -> Heard:
    match message:
        case State():
            return _take_in_state(entry, message, now)
        case Reported():
            changed = entry.reported != message
            entry.reported, entry.seen_at = message, now
            return Heard.CHANGE if changed else Heard.NOTHING
        case Telemetry():
            entry.telemetry, entry.seen_at = message, now
            return Heard.SAMPLE
    return Heard.NOTHING


def _take_in_state(entry: DeviceEntry, message: State, now: float) -> Heard:
    before = entry.state
    if before is not None and message.state == "lost" and message.epoch != before.epoch and before.state != "lost":
        return Heard.NOTHING  # the will of an older connection, delivered after the birth of a newer one
    if message.device_class is None and before is not None:  # a will does not repeat what the birth said
        said = before.model_copy(update={"state": message.state, "epoch": message.epoch})
    else:
        said = message
    entry.state, entry.seen_at = said, now
    if message.state in {"online", "sleeping"}:
        return Heard.BIRTH
    return Heard.CHANGE if said != before else Heard.NOTHING
