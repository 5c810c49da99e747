"""How servers report progress: to a callable the caller gives, or to nobody."""

from collections.abc import Callable
from typing import TypeAlias

Say: TypeAlias = Callable[[str], None]


def quiet(_sentence: str) -> None:
    """Say nothing: the default for tests."""
