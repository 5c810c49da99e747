"""Reading JSON that somebody else wrote: every access is bounded and checked, every complaint names its place.

A `Value` knows where it came from, so that a wrong byte deep inside a program becomes one sentence. Nothing here knows
what a program is.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

LARGEST_INTEGER = 2**53 - 1
"""What every JSON reader holds exactly; in bytes, eight petabytes."""

LONGEST_TEXT = 256
"""Characters of a name; all are printable ASCII."""


class Untrustworthy(ValueError):  # noqa: N818 - reads as what it says of the input
    """The input is not what it should be; the text is a sentence."""


@dataclass(frozen=True, slots=True)
class Value:
    """A piece of parsed JSON and the path that leads to it."""

    raw: object
    where: str

    def refuse(self, wanted: str) -> NoReturn:
        """Say what was expected here."""
        raise Untrustworthy(f"{self.where} is {_shorten(self.raw)}; expected {wanted}.")

    def record(self, *names: str) -> tuple["Value", ...]:
        """Return the fields of an object that has exactly these names."""
        if not isinstance(self.raw, dict):
            self.refuse("an object")
        if self.raw.keys() != set(names):
            wrong = sorted(self.raw.keys() ^ set(names))
            raise Untrustworthy(f"{self.where} lacks or has too much of {_shorten(', '.join(wrong))}.")
        return tuple(Value(self.raw[name], f"{self.where}.{name}") for name in names)

    def mapping(self, most: int) -> dict[str, "Value"]:
        """Return the fields of an object with free names."""
        if not isinstance(self.raw, dict) or len(self.raw) > most:
            self.refuse(f"an object of at most {most} fields")
        return {Value(name, f"{self.where} key").text(): Value(raw, self.where) for name, raw in self.raw.items()}

    def items(self, most: int) -> list["Value"]:
        """Return the items of a list."""
        if not isinstance(self.raw, list) or len(self.raw) > most:
            self.refuse(f"a list of at most {most} items")
        return [Value(raw, f"{self.where}[{index}]") for index, raw in enumerate(self.raw)]

    def integer(self, least: int = 0, most: int = LARGEST_INTEGER) -> int:
        """Return a whole number within bounds."""
        if not isinstance(self.raw, int) or isinstance(self.raw, bool) or not least <= self.raw <= most:
            self.refuse(f"a whole number from {least} to {most}")
        return self.raw

    def integers(self, most: int, least: int = 0) -> tuple[int, ...]:
        """Return a list of whole numbers."""
        return tuple(item.integer(least) for item in self.items(most))

    def number(self) -> float:
        """Return a finite number that is written as one with a fraction."""
        if not isinstance(self.raw, float) or not math.isfinite(self.raw):
            self.refuse("a finite number with a fraction")
        return self.raw

    def flag(self) -> bool:
        """Return true or false."""
        if not isinstance(self.raw, bool):
            self.refuse("true or false")
        return self.raw

    def text(self) -> str:
        """Return a short printable ASCII text."""
        if not isinstance(self.raw, str) or len(self.raw) > LONGEST_TEXT:
            self.refuse(f"a text of at most {LONGEST_TEXT} characters")
        if not (self.raw.isascii() and self.raw.isprintable()):
            self.refuse("printable ASCII")
        return self.raw

    def texts(self, most: int) -> tuple[str, ...]:
        """Return a list of texts."""
        return tuple(item.text() for item in self.items(most))


def parse(encoded: bytes, what: str, most_bytes: int) -> Value:
    """Parse JSON bytes; raise nothing but Untrustworthy."""
    if len(encoded) > most_bytes:
        raise Untrustworthy(f"{what} has {len(encoded)} bytes; at most {most_bytes} are accepted.")
    try:
        return Value(json.loads(encoded.decode("ascii"), object_pairs_hook=_without_repeats), what)
    except Untrustworthy:
        raise
    except (ValueError, RecursionError) as error:
        raise Untrustworthy(f"{what} is not JSON in ASCII: {_shorten(str(error))}.") from None


def _without_repeats(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise Untrustworthy("An object has the same field twice.")
    return fields


def _shorten(raw: object) -> str:
    """Return a few printable characters of anything, without writing out what is large."""
    if isinstance(raw, dict | list):
        return "an object" if isinstance(raw, dict) else f"a list of {len(raw)}"
    text = ascii(raw) if not isinstance(raw, int) or abs(raw) < 10**20 else "a huge number"
    return text if len(text) <= 80 else text[:77] + "..."
