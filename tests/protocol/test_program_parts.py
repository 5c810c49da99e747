"""A program arrives exactly as it was sent, or not at all; and never bigger than it said."""

import hashlib
import random
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_plans.protocol.messages import ProgramReference
from hedgerow_plans.protocol.parts import MAX_ENCODED_BYTES, MAX_PART_BYTES, join, split
from hedgerow_plans.protocol.refusals import RefusalReason, Refused

ENCODED = random.Random(7).randbytes(3 * MAX_PART_BYTES - 500)  # incompressible: three parts
REFERENCE, PARTS = split(ENCODED)


def reason(reference: ProgramReference, parts: list[bytes]) -> RefusalReason:
    result = join(reference, parts)
    assert isinstance(result, Refused)
    assert result.message.endswith(".")
    return result.reason


def changed(**changes: object) -> ProgramReference:
    return ProgramReference.model_validate(REFERENCE.model_dump() | changes)


@given(st.binary(min_size=1, max_size=5000), st.integers(1, 200))
def test_a_program_arrives_as_it_was_sent(piece: bytes, repeats: int) -> None:
    encoded = piece * repeats
    reference, parts = split(encoded)
    assert join(reference, parts) == encoded
    assert reference.digest == hashlib.sha256(encoded).hexdigest()


def test_parts_stay_below_the_brokers_limit_and_the_reference_counts_them() -> None:
    assert [len(part) <= MAX_PART_BYTES for part in PARTS] == [True, True, True]
    assert (REFERENCE.parts, REFERENCE.encoded_bytes) == (3, len(ENCODED))
    assert REFERENCE.compressed_bytes == sum(map(len, PARTS))
    assert join(REFERENCE, PARTS) == ENCODED


def test_missing_and_extra_parts_are_counted() -> None:
    assert reason(REFERENCE, PARTS[:2]) is RefusalReason.MISSING_PART
    assert reason(REFERENCE, []) is RefusalReason.MISSING_PART
    assert reason(REFERENCE, [*PARTS, PARTS[0]]) is RefusalReason.MISSING_PART


def test_parts_in_the_wrong_order_or_twice_are_corrupt() -> None:
    assert reason(REFERENCE, [PARTS[1], PARTS[0], PARTS[2]]) is RefusalReason.CORRUPT
    assert reason(REFERENCE, [PARTS[0], PARTS[0], PARTS[2]]) is RefusalReason.CORRUPT


def test_sizes_are_compared_before_anything_is_decompressed() -> None:
    assert reason(REFERENCE, [PARTS[0], PARTS[1], PARTS[2][:-1]]) is RefusalReason.WRONG_SIZE
    assert reason(REFERENCE, [PARTS[0] + PARTS[1], b"", PARTS[2]]) is RefusalReason.WRONG_SIZE


def test_another_program_of_the_same_size_is_not_the_one_asked_for() -> None:
    assert reason(changed(digest="0" * 64), PARTS) is RefusalReason.WRONG_DIGEST


@pytest.mark.parametrize("difference", [-1, 1])
def test_a_program_that_is_longer_or_shorter_than_it_says_is_corrupt(difference: int) -> None:
    assert reason(changed(encoded_bytes=len(ENCODED) + difference), PARTS) is RefusalReason.CORRUPT


def test_bytes_after_the_end_of_the_stream_are_corrupt() -> None:
    reference = changed(compressed_bytes=REFERENCE.compressed_bytes + 1)
    assert reason(reference, [PARTS[0], PARTS[1], PARTS[2] + b"!"]) is RefusalReason.CORRUPT


def test_a_bomb_is_refused_without_holding_what_it_would_become() -> None:
    bomb = zlib.compress(bytes(64 * 1024 * 1024), level=9)
    assert len(bomb) <= MAX_PART_BYTES
    reference = ProgramReference(digest="0" * 64, parts=1, compressed_bytes=len(bomb), encoded_bytes=1000)
    tracemalloc.start()
    try:
        assert reason(reference, [bomb]) is RefusalReason.CORRUPT
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1024 * 1024


def test_a_receiver_holds_no_more_than_it_is_willing_to() -> None:
    honest = join(REFERENCE, PARTS, limit_bytes=len(ENCODED) - 1)
    assert isinstance(honest, Refused)
    assert honest.reason is RefusalReason.TOO_LARGE
    assert reason(changed(encoded_bytes=MAX_ENCODED_BYTES + 1), PARTS) is RefusalReason.TOO_LARGE


@given(st.data())
def test_one_changed_byte_anywhere_is_noticed(data: st.DataObject) -> None:
    encoded = data.draw(st.binary(min_size=1, max_size=300))
    reference, parts = split(encoded)
    at = data.draw(st.integers(0, len(parts[0]) - 1))
    altered = bytearray(parts[0])
    altered[at] ^= data.draw(st.integers(1, 255))
    joined = join(reference, [bytes(altered)])
    # A few bits of the stream's header mean nothing; the program may then still be the right one, never another.
    assert isinstance(joined, Refused) or joined == encoded


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=4), st.integers(1, 4096))
def test_no_parts_at_all_make_joining_raise(parts: list[bytes], encoded_bytes: int) -> None:
    total = max(1, sum(map(len, parts)))
    reference = ProgramReference(digest="0" * 64, parts=len(parts), compressed_bytes=total, encoded_bytes=encoded_bytes)
    assert isinstance(join(reference, parts), Refused)


@pytest.mark.parametrize("encoded", [b"", bytes(MAX_ENCODED_BYTES + 1)], ids=["nothing", "too much"])
def test_what_nobody_would_join_is_not_split(encoded: bytes) -> None:
    with pytest.raises(ValueError, match=f"has {len(encoded)} bytes: between 1 and {MAX_ENCODED_BYTES}"):
        split(encoded)
