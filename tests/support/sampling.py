"""Long lists: a seeded sample of them in `make test`, all of them in `make thorough`."""

import os
import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")

THOROUGH = os.environ.get("HEDGEROW_THOROUGH") == "1"


def sample(population: Sequence[Item], size: int, seed: int = 0) -> list[Item]:
    """Return the whole list in a thorough run, else a sample that is the same every time, in the list's order."""
    if THOROUGH or size >= len(population):
        return list(population)
    chosen = set(random.Random(seed).sample(range(len(population)), size))
    return [item for position, item in enumerate(population) if position in chosen]


def repetitions(quick: int, thorough: int) -> int:
    """Return how often to try: a few times in `make test`, the promised number in `make thorough`."""
    return thorough if THOROUGH else quick
