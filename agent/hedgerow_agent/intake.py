"""From a message off the network to events: bounded, then the signature, then the document."""

import logging
import time

from pydantic import ValidationError

from hedgerow_agent.config import AgentConfig
from hedgerow_agent.machine.events import DesiredAccepted, DesiredRefused, Event
from hedgerow_agent.machine.state import MachineState
from hedgerow_agent.performer import Performer
from hedgerow_agent.session import Received
from hedgerow_plans.protocol.envelope import Accepted, open_envelope
from hedgerow_plans.protocol.keys import parse_trusted_keys
from hedgerow_plans.protocol.messages import Desired
from hedgerow_plans.protocol.refusals import RefusalReason, Refused
from hedgerow_plans.protocol.topics import Channel, DeviceTopic, ProgramTopic, parse

EARLIEST_BELIEVABLE_SECONDS = 1_735_689_600
"""The first second of 2025: a clock that says less was never set, and expiry cannot be judged by it."""

_log = logging.getLogger(__name__)


class Intake:
    """Knows whose documents are obeyed."""

    def __init__(self, config: AgentConfig) -> None:
        self._fleet, self._device = config.fleet, config.device
        self._trusted = parse_trusted_keys(config.keys.trusted)

    def read(self, received: Received, state: MachineState, performer: Performer) -> list[Event]:
        """Return what a message means."""
        topic = parse(received.topic)
        if isinstance(topic, ProgramTopic):
            return performer.take_part(topic.digest, topic.part, received.payload)
        if not isinstance(topic, DeviceTopic) or topic.channel is not Channel.DESIRED or not received.payload:
            return []  # an empty payload only clears what the broker retained
        event = self._open(received.payload, state)
        if isinstance(event, DesiredRefused):
            _log.warning("A document was refused (%s): %s", event.reason, event.message)
        return [event]

    def _open(self, payload: bytes, state: MachineState) -> DesiredAccepted | DesiredRefused:
        last = Accepted(state.observed_sequence, state.observed_sha256) if state.observed_sha256 else None
        opened = open_envelope(
            payload, self._trusted, self._fleet, self._device, last=last, now_seconds=_believable_time()
        )
        if isinstance(opened, Refused):
            return DesiredRefused(opened.reason, opened.message)
        try:
            desired = Desired.model_validate_json(opened.payload)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            return DesiredRefused(RefusalReason.MALFORMED, f"The document's {place or 'payload'}: {first['msg']}.")
        return DesiredAccepted(opened.accepted.sequence, opened.accepted.sha256, desired)


def _believable_time() -> int | None:
    now = int(time.time())
    return now if now >= EARLIEST_BELIEVABLE_SECONDS else None
