"""What the performances of a run have in common."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where operators keep what they have planned: the story plans for each class, and who comes after it remembers."""
    return tmp_path_factory.mktemp("programs")
