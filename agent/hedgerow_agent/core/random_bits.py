"""Random numbers that are the same on every machine and with every numpy.

Only raw 64-bit words are taken from numpy, whose bit generators keep their streams; what is made of them here is
integer arithmetic and one rounding, so that no mathematics library has a say.
"""

import hashlib
import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

_WORDS_PER_NORMAL = 3
_UNIFORMS_PER_NORMAL = 12
_LEVELS = 65_536
_CHUNK = 4096
"""Numbers made at once: few enough that their words come from the heap; freed mappings teach the C library to keep."""
_MIXING = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_HALF = np.uint64(32)


def generator(*key: str | int) -> np.random.Philox:
    """Return the generator of a key, such as a seed and a name."""
    text = "\x1f".join(map(str, key)).encode()
    return np.random.Philox(key=int.from_bytes(hashlib.sha256(text).digest()[:16], "little"))


def mixed(*numbers: int) -> int:
    """Return a 64-bit word that every one of some whole numbers decides (rounds of splitmix64)."""
    word = 0
    for number in numbers:
        word = (word + number + 0x9E3779B97F4A7C15) % 2**64
        word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
        word ^= word >> 31
    return word


def mix(words: npt.NDArray[np.uint64]) -> None:
    """Make random halves of an array's words in place, each of its own (splitmix64 up to its last multiplication)."""
    for shift, factor in _MIXING:
        words ^= words >> shift
        words *= factor
    words >>= _HALF


def normal(count: int, *key: str | int) -> npt.NDArray[np.float32]:
    """Return numbers of mean 0 and deviation 1: sums of twelve uniform ones, hence never beyond 6."""
    result = np.empty(count, dtype=np.float32)
    for first, piece in normal_pieces(count, *key):
        result[first : first + piece.size] = piece
    return result


def normal_pieces(count: int, *key: str | int) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
    """Yield the same numbers piece by piece, each with where it begins, so that nobody has to hold them all."""
    source = generator(*key)
    for first in range(0, count, _CHUNK):
        yield first, _normals(source, min(_CHUNK, count - first)).astype(np.float32)


def _normals(source: np.random.Philox, count: int) -> npt.NDArray[np.float64]:
    words = np.asarray(source.random_raw(count * _WORDS_PER_NORMAL), dtype="<u8")
    sums = words.view("<u2").reshape(count, _UNIFORMS_PER_NORMAL).sum(axis=1, dtype=np.int64)
    mean = _UNIFORMS_PER_NORMAL * (_LEVELS - 1) / 2
    deviation = math.sqrt(_LEVELS**2 - 1)
    return np.asarray((sums - mean) / deviation, dtype=np.float64)
