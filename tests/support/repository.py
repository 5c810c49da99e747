"""Where this repository is, and copies of it that a test may break."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = Path(sys.prefix)
PACKAGES = ("operator/hedgerow_operator", "agent/hedgerow_agent", "plans/hedgerow_plans")


def copy_sources(destination: Path) -> Path:
    """Copy what the static checks look at, so that a test can plant a fault in it."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, destination / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "Makefile"):
        shutil.copy2(ROOT / name, destination / name)
    return destination


def source_path(tree: Path) -> str:
    """Return the PYTHONPATH under which a copy of the sources comes before the installed ones."""
    return os.pathsep.join(str(tree / package.partition("/")[0]) for package in PACKAGES)


def make(tree: Path, target: str) -> subprocess.CompletedProcess[str]:
    """Run a target of the Makefile on a copy of the sources, with the tools of this environment."""
    environment = {**os.environ, "PYTHONPATH": source_path(tree)}
    command = ["make", "--no-print-directory", "-C", str(tree), target, f"VENV={VENV}"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
