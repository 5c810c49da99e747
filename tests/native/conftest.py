"""The compiled backend as these sources make it, built once for all tests here."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from hedgerow_agent.core.native.library import Library, Unavailable, load
from support.native_calls import COMPARED
from support.repository import ROOT
from support.twin_tests import not_compared

settings.register_profile(
    "compiled", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("compiled")


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    output = tmp_path_factory.mktemp("native") / "libhedgerow.so"
    subprocess.run([sys.executable, ROOT / "native" / "build.py", "--output", output], check=True)
    loaded = load(Path(output))
    assert not isinstance(loaded, Unavailable), loaded.reason
    return loaded


@pytest.fixture(autouse=True)
def _compares_what_it_says(request: pytest.FixtureRequest) -> Iterator[None]:
    COMPARED.clear()
    yield
    callspec = getattr(request.node, "callspec", None)
    missing = not_compared(request.node.originalname, {} if callspec is None else callspec.params)
    assert not missing, f"{request.node.name} says that it compares {sorted(missing)} and does not."
