"""Waiting for the world to get somewhere, with a sentence when it does not."""

import time
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def eventually(
    look: Callable[[], _T], expectation: str, *, timeout_seconds: float = 30.0, pause_seconds: float = 0.1
) -> _T:
    """Look until what is seen is true, and give it; else fail with the expectation and the last sight."""
    deadline = time.monotonic() + timeout_seconds
    while not (seen := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"After {timeout_seconds:g} s still not: {expectation}; last seen: {seen!r}.")
        time.sleep(pause_seconds)
    return seen
