"""Only the genuine, newest document for this device is obeyed; anything else is refused with its reason."""

import base64
import json
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_plans.protocol.envelope import (
    MAX_ENVELOPE_BYTES,
    Accepted,
    Header,
    Opened,
    open_envelope,
    payload_text,
    seal,
)
from hedgerow_plans.protocol.keys import key_id, public_key_text
from hedgerow_plans.protocol.messages import Desired, Refusal, RollbackRequest
from hedgerow_plans.protocol.refusals import RefusalReason, Refused

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
NEXT_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
STRANGER = Ed25519PrivateKey.from_private_bytes(bytes(range(2, 34)))
TRUSTED = {key_id(key.public_key()): key.public_key() for key in (KEY, NEXT_KEY)}
DESIRED = Desired(rollback=RollbackRequest(to="base", request_id="tuesday-1"))
HEADER = Header("plant", "pump-07", 5)
SEALED = seal(KEY, HEADER, payload_text(DESIRED))


def opening(received: bytes, last: Accepted | None = None, now_seconds: int | None = 1000) -> Opened | Refused:
    return open_envelope(received, TRUSTED, "plant", "pump-07", last=last, now_seconds=now_seconds)


def opened(received: bytes, last: Accepted | None = None, now_seconds: int | None = 1000) -> Opened:
    result = opening(received, last, now_seconds)
    assert isinstance(result, Opened), result
    return result


def reason(received: bytes, last: Accepted | None = None, now_seconds: int | None = 1000) -> RefusalReason:
    result = opening(received, last, now_seconds)
    assert isinstance(result, Refused), result
    Refusal(count=1, reason=result.reason, message=result.message)  # it fits into a report
    assert result.message.endswith(".")
    return result.reason


def rewritten(**changes: object) -> bytes:
    """The sealed envelope with fields changed, written canonically again."""
    fields = json.loads(SEALED) | changes
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def test_what_was_sealed_is_opened_with_everything_in_it() -> None:
    result = opened(SEALED)
    assert result.header == HEADER
    assert result.key_id == key_id(KEY.public_key())
    assert Desired.model_validate_json(result.payload) == DESIRED
    assert result.accepted.sequence == 5
    assert not result.redelivered


def test_the_wire_form_never_changes_by_accident() -> None:
    signature = json.loads(SEALED)["signature"]
    expected = (
        b'{"device":"pump-07","fleet":"plant","keyId":"56475aa75463474c","payload":"{\\"allowance_bytes\\":null,'
        b'\\"assignment\\":null,\\"kind\\":\\"desired\\",\\"override_bytes\\":null,\\"rollback\\":{\\"released\\":false,'
        b'\\"request_id\\":\\"tuesday-1\\",\\"to\\":\\"base\\"}}","schema":1,"sequence":5,"signature":"'
        + signature.encode()
        + b'"}'
    )
    assert expected == SEALED
    covered = {key: value for key, value in json.loads(SEALED).items() if key != "signature"}
    canonical = json.dumps(covered, sort_keys=True, separators=(",", ":")).encode()
    KEY.public_key().verify(base64.b64decode(signature), canonical)


def test_a_document_without_signature_is_unsigned() -> None:
    fields = json.loads(SEALED)
    del fields["signature"]
    assert reason(json.dumps(fields).encode()) is RefusalReason.UNSIGNED
    assert reason(rewritten(signature="")) is RefusalReason.UNSIGNED
    assert reason(payload_text(DESIRED).encode()) is RefusalReason.UNSIGNED


@pytest.mark.parametrize(
    "changes",
    [
        {"payload": payload_text(Desired())},
        {"sequence": 6},
        {"device": "pump-08"},
        {"fleet": "other"},
        {"expires": 99},
        {"keyId": key_id(NEXT_KEY.public_key())},
        {"signature": base64.b64encode(bytes(64)).decode()},
        {"signature": base64.b64encode(bytes(63)).decode()},
        {"signature": "not base64!"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_an_altered_document_has_a_bad_signature(changes: dict[str, object]) -> None:
    assert reason(rewritten(**changes)) is RefusalReason.BAD_SIGNATURE


def test_a_key_that_is_not_configured_is_unknown_however_well_it_signs() -> None:
    assert reason(seal(STRANGER, HEADER, "{}")) is RefusalReason.UNKNOWN_KEY


def test_two_trusted_keys_let_the_operator_rotate() -> None:
    first = opened(SEALED)
    second = opened(seal(NEXT_KEY, replace(HEADER, sequence=6), "{}"), first.accepted)
    assert second.key_id == key_id(NEXT_KEY.public_key())
    only_new = {key_id(NEXT_KEY.public_key()): NEXT_KEY.public_key()}
    refused = open_envelope(SEALED, only_new, "plant", "pump-07", last=None, now_seconds=None)
    assert isinstance(refused, Refused)
    assert refused.reason is RefusalReason.UNKNOWN_KEY


@pytest.mark.parametrize("header", [replace(HEADER, device="pump-08"), replace(HEADER, fleet="other")])
def test_a_genuine_document_for_somebody_else_is_not_for_us(header: Header) -> None:
    assert reason(seal(KEY, header, "{}")) is RefusalReason.WRONG_DEVICE


def test_an_older_document_is_a_replay_and_the_same_one_is_a_redelivery() -> None:
    older = seal(KEY, replace(HEADER, sequence=4), "{}")
    accepted = opened(SEALED, opened(older).accepted).accepted

    assert reason(older, accepted) is RefusalReason.REPLAYED
    again = opened(SEALED, accepted)
    assert again.redelivered
    assert again.accepted == accepted
    assert not opened(seal(KEY, replace(HEADER, sequence=6), "{}"), accepted).redelivered


def test_another_document_with_the_sequence_of_the_last_one_is_a_replay() -> None:
    accepted = opened(SEALED).accepted
    assert reason(seal(KEY, HEADER, "{}"), accepted) is RefusalReason.REPLAYED


def test_an_expired_document_is_refused_from_its_second_on_and_only_by_who_has_a_clock() -> None:
    sealed = seal(KEY, replace(HEADER, expires=1000), "{}")
    opened(sealed, now_seconds=999)
    assert reason(sealed, now_seconds=1000) is RefusalReason.EXPIRED
    opened(sealed, now_seconds=None)


def test_a_redelivery_stays_accepted_after_it_expired() -> None:
    sealed = seal(KEY, replace(HEADER, expires=1000), "{}")
    accepted = opened(sealed, now_seconds=999).accepted
    assert opened(sealed, accepted, now_seconds=2000).redelivered


@pytest.mark.parametrize(
    "received",
    [
        b"",
        b"\xff\xfe",
        b"null",
        b"[]",
        b"[" * MAX_ENVELOPE_BYTES,
        b'{"a":' * 10_000,
        SEALED + b" ",
        b" " + SEALED,
        SEALED.replace(b'"schema":1', b'"schema":2'),
        SEALED.replace(b'"sequence":5', b'"sequence":5.0'),
        SEALED.replace(b'"sequence":5', b'"sequence":"5"'),
        SEALED.replace(b'"sequence":5', b'"sequence":-5'),
        SEALED.replace(b'"sequence":5', b'"sequence":' + b"9" * 5000),
        SEALED.replace(b'"sequence":5', b'"sequence":4,"sequence":5'),
        SEALED.replace(b'"sequence":5', b'"sequence":5,"surprise":1'),
        SEALED.replace(b'"sequence":5', b'"sequence":NaN'),
        SEALED.replace(b'"fleet":"plant"', b'"fleet":"pl\\u0061nt"'),
        SEALED.replace(b'"fleet":"plant"', b'"fleet":"\\ud800"'),
        SEALED.replace(b'"keyId"', b'"expires":null,"keyId"'),
        b"x" * (MAX_ENVELOPE_BYTES + 1),
    ],
    ids=range(20),
)
def test_what_is_not_one_canonical_envelope_is_malformed(received: bytes) -> None:
    assert reason(received) is RefusalReason.MALFORMED


def test_an_envelope_that_nobody_would_open_is_not_sealed() -> None:
    with pytest.raises(ValueError, match=r"'pump-07' has \d+ bytes: at most 65536"):
        seal(KEY, HEADER, "x" * MAX_ENVELOPE_BYTES)
    with pytest.raises(ValueError, match="device"):
        seal(KEY, replace(HEADER, device="Pump 7"), "{}")


@st.composite
def mutations(draw: st.DrawFn) -> bytes:
    """The sealed bytes with a few bytes replaced, inserted, removed, or doubled."""
    received = bytearray(SEALED)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(received) - 1))
        until = at + draw(st.integers(0, 8))
        received[at:until] = draw(st.one_of(st.binary(max_size=8), st.just(bytes(received[at:until]) * 2)))
    return bytes(received)


@given(mutations())
def test_no_mutation_is_ever_opened_and_none_raises(received: bytes) -> None:
    result = opening(received)
    assert isinstance(result, Opened) == (received == SEALED)


@given(st.binary(max_size=2000) | st.text(max_size=500).map(str.encode))
def test_no_bytes_at_all_make_opening_raise(received: bytes) -> None:
    assert isinstance(opening(received), Refused)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*sorted(json.loads(SEALED)), "expires", "other"]), JSON_VALUES))
def test_no_values_in_the_fields_make_opening_raise(changes: dict[str, object]) -> None:
    received = rewritten(**changes)
    assert isinstance(opening(received), Opened) == (received == SEALED)


@given(st.text(max_size=2000), st.integers(0, 2**53), st.none() | st.integers(1001, 2**53))
def test_any_text_comes_back_as_it_was(payload: str, sequence: int, expires: int | None) -> None:
    header = Header("plant", "pump-07", sequence, expires)
    result = opened(seal(KEY, header, payload))
    assert (result.header, result.payload) == (header, payload)


def test_the_trusted_keys_in_a_sentence_are_bounded() -> None:
    many = {f"{number:016x}": KEY.public_key() for number in range(500)}
    result = open_envelope(seal(STRANGER, HEADER, "{}"), many, "plant", "pump-07", last=None, now_seconds=None)
    assert isinstance(result, Refused)
    assert len(result.message) < 1024
    assert public_key_text(STRANGER.public_key()) not in result.message
