"""Why a document or a program was not accepted: a value with a reason for machines and a sentence for people.

Refusing is an ordinary result here, never an exception: what comes over the network is not ours to trust.
"""

from dataclasses import dataclass
from enum import StrEnum


class RefusalReason(StrEnum):
    """Why a signed envelope, or the parts of a program, were refused."""

    UNSIGNED = "Unsigned"  # there is no signature at all
    BAD_SIGNATURE = "BadSignature"  # the key is trusted, but it did not sign these bytes
    UNKNOWN_KEY = "UnknownKey"  # signed by a key that the configuration does not name
    REPLAYED = "Replayed"  # not newer than what was accepted before
    EXPIRED = "Expired"
    WRONG_DEVICE = "WrongDevice"  # meant for another device or another fleet
    MALFORMED = "Malformed"  # not an envelope, not canonical, or out of bounds
    MISSING_PART = "MissingPart"  # fewer or more parts than the reference says
    WRONG_SIZE = "WrongSize"  # the parts do not add up to what the reference says
    TOO_LARGE = "TooLarge"  # more than the receiver is willing to hold
    CORRUPT = "Corrupt"  # the parts do not decompress to what the reference says
    WRONG_DIGEST = "WrongDigest"  # it decompresses, but is not the program that was asked for


@dataclass(frozen=True, slots=True)
class Refused:
    """What was received is not obeyed, and why."""

    reason: RefusalReason
    message: str
