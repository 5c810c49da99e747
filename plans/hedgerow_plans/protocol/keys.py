"""Ed25519 keys as text: made, written down, read back, and named by their fingerprint.

Keys are 32 raw bytes in base64. Where they are kept (a Secret, a configuration file) is the caller's business.
"""

import base64
import binascii
import hashlib
from collections.abc import Mapping

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

KEY_BYTES = 32
KEY_ID_LENGTH = 16


def generate_private_key() -> Ed25519PrivateKey:
    """Return a new key from the system's randomness."""
    return Ed25519PrivateKey.generate()


def key_id(key: Ed25519PublicKey) -> str:
    """Return the name of a key: the first 16 hexadecimal digits of the sha256 of its raw bytes."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:KEY_ID_LENGTH]


def private_key_text(key: Ed25519PrivateKey) -> str:
    """Return the private key as base64 text. This is the secret itself."""
    return base64.b64encode(key.private_bytes_raw()).decode()


def public_key_text(key: Ed25519PublicKey) -> str:
    """Return the public key as base64 text."""
    return base64.b64encode(key.public_bytes_raw()).decode()


def parse_private_key(text: str) -> Ed25519PrivateKey:
    """Return the private key that the text holds; the error never repeats the text."""
    return Ed25519PrivateKey.from_private_bytes(_raw_bytes(text, "private"))


def parse_public_key(text: str) -> Ed25519PublicKey:
    """Return the public key that the text holds."""
    return Ed25519PublicKey.from_public_bytes(_raw_bytes(text, "public"))


def parse_trusted_keys(entries: Mapping[str, str]) -> dict[str, Ed25519PublicKey]:
    """Return the trusted keys by id; several at once are how keys are rotated."""
    trusted = {}
    for name, text in entries.items():
        try:
            key = parse_public_key(text)
        except ValueError as problem:
            raise ValueError(f"Trusted key {name!r}: {problem}") from None
        if name != key_id(key):
            raise ValueError(f"Trusted key {name!r} has the id {key_id(key)!r}: write it under that name.")
        trusted[name] = key
    return trusted


def _raw_bytes(text: str, which: str) -> bytes:
    try:
        raw = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"The {which} key is not base64: expected {KEY_BYTES} raw bytes in base64.") from None
    if len(raw) != KEY_BYTES:
        raise ValueError(f"The {which} key has {len(raw)} bytes: an Ed25519 key has {KEY_BYTES}.")
    return raw
