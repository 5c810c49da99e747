"""The fake machine that set-up runs on."""

from pathlib import Path

import pytest

from provision import find
from support.fake_machine import Machine


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(find, "SYSTEM_FOLDERS", ())
    made = Machine(tmp_path)
    made.path.mkdir()
    return made
