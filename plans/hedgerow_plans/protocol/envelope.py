"""Signed envelopes: everything that changes what a device runs comes in one.

An envelope is canonical JSON (sorted keys, no spaces, ASCII) with an Ed25519 signature over the canonical bytes of all
other fields. There is exactly one way to write a given envelope: any other spelling of it is refused, so that "the same
document" always means the same bytes. Opening never raises, whatever the bytes are. What the payload means, and where
the last accepted sequence is stored, is the caller's business.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import ConfigDict, Field, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel

from hedgerow_plans.protocol.keys import KEY_ID_LENGTH, key_id
from hedgerow_plans.protocol.messages import Count, Message
from hedgerow_plans.protocol.refusals import RefusalReason, Refused

ENVELOPE_SCHEMA: Final = 1
MAX_ENVELOPE_BYTES = 64 * 1024
"""Of a whole envelope: far more than a `Desired` needs, and less than brokers carry."""

SIGNATURE_BYTES = 64
_Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]


@dataclass(frozen=True, slots=True)
class Header:
    """Whom an envelope is for, and when it counts."""

    fleet: str
    device: str
    sequence: int  # per device, only grows
    expires: int | None = None  # unix seconds; from then on the envelope is refused


@dataclass(frozen=True, slots=True)
class Accepted:
    """What a device remembers of the newest envelope it accepted, so that older ones are known as such."""

    sequence: int
    sha256: str  # of the whole envelope


@dataclass(frozen=True, slots=True)
class Opened:
    """A genuine envelope: its header and payload, and what to remember of it."""

    header: Header
    key_id: str
    payload: str
    accepted: Accepted
    redelivered: bool  # the very bytes that were accepted last


class _Envelope(Message):
    """The wire form."""

    model_config = ConfigDict(strict=True, alias_generator=to_camel, validate_by_name=True)

    schema_version: Annotated[Literal[1], Field(alias="schema")] = ENVELOPE_SCHEMA
    fleet: _Name
    device: _Name
    sequence: Count
    key_id: Annotated[str, StringConstraints(pattern=rf"^[0-9a-f]{{{KEY_ID_LENGTH}}}$")]
    expires: Count | None = None
    payload: Annotated[str, StringConstraints(max_length=MAX_ENVELOPE_BYTES)]
    signature: Annotated[str, StringConstraints(max_length=128)]

    def signed_bytes(self) -> bytes:
        """Return what the signature covers: every other field."""
        return _canonical_bytes(self.model_dump(by_alias=True, exclude_none=True, exclude={"signature"}))

    def wire_bytes(self) -> bytes:
        """Return the one spelling of this envelope."""
        return _canonical_bytes(self.model_dump(by_alias=True, exclude_none=True))


def payload_text(message: Message) -> str:
    """Return the canonical JSON text of a message: the same message always gives the same text."""
    return _canonical_bytes(message.model_dump(mode="json")).decode()


def seal(key: Ed25519PrivateKey, header: Header, payload: str) -> bytes:
    """Return the signed envelope of a payload; raise ValueError if nobody could open it."""
    unsigned = _Envelope(
        fleet=header.fleet,
        device=header.device,
        sequence=header.sequence,
        key_id=key_id(key.public_key()),
        expires=header.expires,
        payload=payload,
        signature="",
    )
    signature = base64.b64encode(key.sign(unsigned.signed_bytes())).decode()
    sealed = unsigned.model_copy(update={"signature": signature}).wire_bytes()
    if len(sealed) > MAX_ENVELOPE_BYTES:
        raise ValueError(f"The envelope for {header.device!r} has {len(sealed)} bytes: at most {MAX_ENVELOPE_BYTES}.")
    return sealed


def open_envelope(
    received: bytes,
    trusted_keys: Mapping[str, Ed25519PublicKey],
    fleet: str,
    device: str,
    *,
    last: Accepted | None,
    now_seconds: int | None,
) -> Opened | Refused:
    """Return what a genuine, new envelope says, or why it is refused; without a clock, expiry is not judged."""
    envelope = _parse(received)
    if isinstance(envelope, Refused):
        return envelope
    refused = _check_signature(envelope, trusted_keys) or _check_address(envelope, fleet, device)
    if refused:
        return refused
    accepted = Accepted(envelope.sequence, hashlib.sha256(received).hexdigest())
    redelivered = accepted == last
    if not redelivered:
        refused = _check_sequence(envelope, last) or _check_expiry(envelope, now_seconds)
    if refused:
        return refused
    header = Header(envelope.fleet, envelope.device, envelope.sequence, envelope.expires)
    return Opened(header, envelope.key_id, envelope.payload, accepted, redelivered)


def _canonical_bytes(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def _parse(received: bytes) -> _Envelope | Refused:
    if len(received) > MAX_ENVELOPE_BYTES:
        return _malformed(f"It has {len(received)} bytes, and an envelope has at most {MAX_ENVELOPE_BYTES}.")
    try:
        envelope = _Envelope.model_validate_json(received)
    except ValidationError as problem:
        return _not_an_envelope(problem)
    if not envelope.signature:
        return _unsigned()
    if envelope.wire_bytes() != received:
        return _malformed("It is not written in the canonical form: sorted keys, no spaces, no field twice.")
    return envelope


def _not_an_envelope(problem: ValidationError) -> Refused:
    details = problem.errors(include_url=False, include_context=False, include_input=False)
    if any(detail["loc"] == ("signature",) and detail["type"] == "missing" for detail in details):
        return _unsigned()
    first = details[0]
    field = ".".join(str(part) for part in first["loc"])[:64] or "the document"
    return _malformed(f"It is not an envelope: {field}: {first['msg'][:200]}.")


def _unsigned() -> Refused:
    return Refused(RefusalReason.UNSIGNED, "The document has no signature; only signed envelopes are obeyed.")


def _malformed(message: str) -> Refused:
    return Refused(RefusalReason.MALFORMED, message)


def _check_signature(envelope: _Envelope, trusted_keys: Mapping[str, Ed25519PublicKey]) -> Refused | None:
    key = trusted_keys.get(envelope.key_id)
    if key is None:
        trusted = ", ".join(sorted(trusted_keys)[:8]) or "none"
        message = f"It is signed with the key {envelope.key_id}, which is not trusted here (trusted: {trusted})."
        return Refused(RefusalReason.UNKNOWN_KEY, message)
    message = f"The signature does not belong to this document and the key {envelope.key_id}."
    signature = _decode_signature(envelope.signature)
    if signature is None:
        return Refused(RefusalReason.BAD_SIGNATURE, message)
    try:
        key.verify(signature, envelope.signed_bytes())
    except InvalidSignature:
        return Refused(RefusalReason.BAD_SIGNATURE, message)
    return None


def _decode_signature(text: str) -> bytes | None:
    """Return the signature's bytes if the text is their one base64 spelling."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    canonical = base64.b64encode(raw).decode() == text
    return raw if canonical and len(raw) == SIGNATURE_BYTES else None


def _check_address(envelope: _Envelope, fleet: str, device: str) -> Refused | None:
    if (envelope.fleet, envelope.device) == (fleet, device):
        return None
    meant, here = f"{envelope.fleet}/{envelope.device}", f"{fleet}/{device}"
    return Refused(RefusalReason.WRONG_DEVICE, f"It is meant for {meant}, and this device is {here}.")


def _check_sequence(envelope: _Envelope, last: Accepted | None) -> Refused | None:
    if last is None or envelope.sequence > last.sequence:
        return None
    message = f"Its sequence {envelope.sequence} is not newer than {last.sequence}, which was accepted before."
    return Refused(RefusalReason.REPLAYED, message)


def _check_expiry(envelope: _Envelope, now_seconds: int | None) -> Refused | None:
    if envelope.expires is None or now_seconds is None or now_seconds < envelope.expires:
        return None
    message = f"It expired at {envelope.expires} (unix seconds), and here it is {now_seconds}."
    return Refused(RefusalReason.EXPIRED, message)
