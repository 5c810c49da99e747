"""The compiled backend as these sources make it, built once for all tests here and kept until the sources change."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from hedgerow_agent.core.native.library import Library, Unavailable, load
from support.repository import ROOT

settings.register_profile("compiled", deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
settings.load_profile("compiled")


def fingerprint() -> str:
    """Return a name for these sources and the way they are built: half a minute of compiling is not done twice."""
    digest = hashlib.sha256(os.environ.get("CC", "").encode())
    for path in sorted((ROOT / "native").rglob("*")):
        if path.suffix in {".c", ".h", ".py"}:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    output = ROOT / "build" / f"native-{fingerprint()}" / "libhedgerow.so"
    if not output.exists():
        fresh = tmp_path_factory.mktemp("native") / "libhedgerow.so"
        subprocess.run([sys.executable, ROOT / "native" / "build.py", "--output", fresh], check=True)
        output.parent.mkdir(parents=True, exist_ok=True)
        partly = output.with_suffix(f".{os.getpid()}")
        partly.write_bytes(fresh.read_bytes())
        partly.replace(output)
    loaded = load(Path(output))
    assert not isinstance(loaded, Unavailable), loaded.reason
    return loaded
