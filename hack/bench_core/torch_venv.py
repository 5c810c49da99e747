"""Where torch is: a venv of its own, outside the project's, made once and kept in the cache.

HEDGEROW_TORCH_VENV names another folder. What cannot be had is said in a sentence and is nobody's failure.
"""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from provision.cache import cache_root

TORCH_VERSION = "2.15.0"
"""The version that every figure speaks of."""


def torch_folder(environ: Mapping[str, str]) -> Path:
    """Say where the venv is or would be."""
    named = environ.get("HEDGEROW_TORCH_VENV")
    return Path(named).absolute() if named else cache_root(environ) / f"torch-{TORCH_VERSION}"


def torch_python(environ: Mapping[str, str]) -> Path | None:
    """Return the Python that has the pinned torch, or None if there is none yet."""
    python = torch_folder(environ) / "bin" / "python"
    question = "import importlib.metadata as m; print(m.version('torch'), m.version('numpy'))"
    try:
        answer = subprocess.run([python, "-c", question], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return python if answer.split("+")[0].split()[0] == TORCH_VERSION else None


def obtain_torch(environ: Mapping[str, str]) -> Path | str:
    """Return the Python that has torch, installing it if need be, or a sentence that says why there is none."""
    if found := torch_python(environ):
        return found
    folder = torch_folder(environ)
    sys.stderr.write(f"Installing torch {TORCH_VERSION} into {folder}, once; this downloads some gigabytes.\n")
    commands: tuple[list[str | Path], ...] = (
        [sys.executable, "-m", "venv", folder],
        [folder / "bin" / "python", "-m", "pip", "install", "--quiet", f"torch=={TORCH_VERSION}", "numpy"],
    )
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            return f"There is no torch {TORCH_VERSION} to compare with, so nothing was measured ({why})."
    return torch_python(environ) or f"The venv {folder} does not hold torch {TORCH_VERSION}; remove it and try again."
