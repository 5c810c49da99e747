"""Reads versions and says which are good enough. Pure."""

import re
from dataclasses import dataclass

Numbers = tuple[int, int, int]


def parse_version(text: str) -> Numbers | None:
    """Read the first thing like a version: `v1.34.4-dispatcher` is (1, 34, 4), `go1.26` is (1, 26, 0)."""
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None


def written(numbers: Numbers) -> str:
    """Write a version the usual way."""
    return ".".join(str(number) for number in numbers)


@dataclass(frozen=True, slots=True)
class Accepted:
    """The versions of a program that the tests are known to work with: at_least <= version < below."""

    at_least: Numbers
    below: Numbers

    def objection(self, version: str) -> str | None:
        """Say why a version is not good, or None when it is."""
        numbers = parse_version(version)
        if numbers is None:
            return f"its version {version!r} cannot be read"
        if numbers < self.at_least:
            return f"its version {version} is older than {written(self.at_least)}"
        if numbers >= self.below:
            return f"its version {version} is not below {written(self.below)}"
        return None


def go_directive(go_mod: str) -> Numbers:
    """Return the oldest Go that may build a module, from the text of its go.mod."""
    found = re.search(r"^go (\S+)$", go_mod, re.MULTILINE)
    numbers = parse_version(found[1]) if found else None
    if numbers is None:
        raise ValueError("go.mod has no line `go X.Y`")
    return numbers
