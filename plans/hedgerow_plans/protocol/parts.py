"""Programs in parts below a broker's message limit: cut by the operator, joined and checked by the agent.

Joining never raises and never holds more than the reference allows: sizes are compared before anything is decompressed,
and decompression stops at the promised length. The digest is that of the encoded (uncompressed) bytes, so that it does
not depend on the compressor.
"""

import hashlib
import zlib
from collections.abc import Sequence

from hedgerow_plans.protocol.messages import ProgramReference
from hedgerow_plans.protocol.refusals import RefusalReason, Refused

MAX_PART_BYTES = 120 * 1024
"""Brokers carry 128 KiB by default; topic and packet header need a little of it."""

MAX_ENCODED_BYTES = 64 * 1024 * 1024
"""What a receiver is willing to hold unless it says otherwise."""


def split(encoded: bytes) -> tuple[ProgramReference, list[bytes]]:
    """Return the reference of an encoded program and its parts, in order."""
    if not 0 < len(encoded) <= MAX_ENCODED_BYTES:
        raise ValueError(f"The program has {len(encoded)} bytes: between 1 and {MAX_ENCODED_BYTES} can be sent.")
    compressed = zlib.compress(encoded, level=9)
    parts = [compressed[start : start + MAX_PART_BYTES] for start in range(0, len(compressed), MAX_PART_BYTES)]
    reference = ProgramReference(
        digest=hashlib.sha256(encoded).hexdigest(),
        parts=len(parts),
        compressed_bytes=len(compressed),
        encoded_bytes=len(encoded),
    )
    return reference, parts


def join(reference: ProgramReference, parts: Sequence[bytes], limit_bytes: int = MAX_ENCODED_BYTES) -> bytes | Refused:
    """Return the encoded program that the parts hold, or why they are refused."""
    refused = _check_sizes(reference, parts, limit_bytes)
    if refused:
        return refused
    encoded = _decompress(reference, b"".join(parts))
    if isinstance(encoded, Refused):
        return encoded
    found = hashlib.sha256(encoded).hexdigest()
    if found != reference.digest:
        message = f"The parts hold the program {found}, and {reference.digest} was asked for."
        return Refused(RefusalReason.WRONG_DIGEST, message)
    return encoded


def _check_sizes(reference: ProgramReference, parts: Sequence[bytes], limit_bytes: int) -> Refused | None:
    if reference.encoded_bytes > limit_bytes:
        message = f"The program has {reference.encoded_bytes} bytes, and at most {limit_bytes} are held here."
        return Refused(RefusalReason.TOO_LARGE, message)
    if len(parts) != reference.parts:
        return Refused(
            RefusalReason.MISSING_PART, f"There are {len(parts)} parts, and there should be {reference.parts}."
        )
    largest = max(len(part) for part in parts)
    if largest > MAX_PART_BYTES:
        return Refused(RefusalReason.WRONG_SIZE, f"A part has {largest} bytes: at most {MAX_PART_BYTES}.")
    total = sum(len(part) for part in parts)
    if total != reference.compressed_bytes:
        message = f"The parts have {total} bytes together, and should have {reference.compressed_bytes}."
        return Refused(RefusalReason.WRONG_SIZE, message)
    return None


def _decompress(reference: ProgramReference, compressed: bytes) -> bytes | Refused:
    stream = zlib.decompressobj()
    try:
        encoded = stream.decompress(compressed, reference.encoded_bytes + 1)
    except zlib.error as problem:
        return Refused(RefusalReason.CORRUPT, f"The parts of {reference.digest} do not decompress: {problem}.")
    if len(encoded) != reference.encoded_bytes or not stream.eof or stream.unused_data:
        message = f"The parts of {reference.digest} do not decompress to exactly {reference.encoded_bytes} bytes."
        return Refused(RefusalReason.CORRUPT, message)
    return encoded
