"""Small pieces of sentences: numbers with their noun, and lists of names that stay short."""

from collections.abc import Iterable

SHOWN = 5


def plural(number: int, noun: str) -> str:
    """Return the number with its noun, as in `1 device` and `2 devices`."""
    ending = "es" if noun.endswith("s") else "s"
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{ending}"


def listed(names: Iterable[str]) -> str:
    """Return a few of the names, and how many more there are."""
    ordered = sorted(names)
    if len(ordered) <= SHOWN:
        return ", ".join(ordered)
    return f"{', '.join(ordered[:SHOWN])} and {len(ordered) - SHOWN} more"
