"""Makes virtual environments: the repository's own from its lock, and small ones in the cache for tools.

A venv cannot be built elsewhere and renamed (its scripts name their folder): a stamp written last says done.
"""

import hashlib
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from provision import children, debian, packages
from provision.locks import step_lock
from provision.problems import Problem
from provision.progress import say

STAMP = ".hedgerow-stamp"
BEGUN = ".hedgerow-begun"
BASE_PYTHON: str = getattr(sys, "_base_executable", None) or sys.executable
"""The Python behind an activated venv, because that venv may be the very one to rebuild."""


def stamp_of(lock: bytes, pyproject: bytes, python_version: str, folder: Path) -> str:
    """Name what a venv is made from; the folder too, because an editable install points at it."""
    digest = hashlib.sha256()
    for part in (lock, pyproject, python_version.encode(), str(folder).encode()):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def next_step(wanted: str, finished: str | None, begun: str | None, python_runs: bool) -> str:
    """Decide what a venv needs: "nothing", "continue" (an interrupted installation) or "rebuild"."""
    if not python_runs:
        return "rebuild"
    if finished == wanted:
        return "nothing"
    return "continue" if begun == wanted and finished is None else "rebuild"


def make_project_venv(repository: Path, root: Path, environ: Mapping[str, str]) -> str:
    """Make sure of `.venv` in the repository (or HEDGEROW_VENV); returns what was done, as a line."""
    lock, pyproject = repository / "hack" / "requirements" / "dev.txt", repository / "pyproject.toml"
    wanted = stamp_of(lock.read_bytes(), pyproject.read_bytes(), platform.python_version(), repository)
    venv = repository / environ.get("HEDGEROW_VENV", ".venv")
    _refuse_strange_folder(venv)
    name = hashlib.sha256(str(venv).encode()).hexdigest()[:8]
    with step_lock(root, f"venv-{name}"):
        step = next_step(wanted, _read(venv / STAMP), _read(venv / BEGUN), _runs(venv))
        if step == "nothing":
            _build_library(repository, venv, environ)
            return f"venv  Python {platform.python_version()}  {venv} (up to date)"
        if step == "rebuild" and venv.exists():
            say(f"  {venv} is out of date or broken: making it again")
        if step == "rebuild" and _link_packages(venv, lock, root):
            source = "linked from the cache"
        else:
            if step == "rebuild":
                create_venv(venv, root, environ)
            (venv / BEGUN).write_text(wanted)
            _install_packages(venv, lock, root, environ)
            source = "installed from the lock"
        (venv / BEGUN).write_text(wanted)
        _install_project(repository, venv, root, environ)
        (venv / BEGUN).replace(venv / STAMP)
    return f"venv  Python {platform.python_version()}  {venv} ({source})"


def _refuse_strange_folder(venv: Path) -> None:
    """Never clear a folder that holds something other than a venv, whatever HEDGEROW_VENV says."""
    if venv.is_dir() and any(venv.iterdir()) and not (venv / "pyvenv.cfg").is_file():
        raise Problem(
            f"{venv} is there and is not a virtual environment, so it is left alone: move it away, or set "
            "HEDGEROW_VENV to another folder."
        )


def _link_packages(venv: Path, lock: Path, root: Path) -> bool:
    """Make a venv of the packages that another clone has installed from the same lock, if there are any."""
    subprocess.run([BASE_PYTHON, "-m", "venv", "--clear", "--without-pip", venv], check=True, cwd="/")
    return packages.restore(root, packages.key(lock.read_bytes()), venv) and _runs(venv)


def _install_packages(venv: Path, lock: Path, root: Path, environ: Mapping[str, str]) -> None:
    _pip(venv, ["--require-hashes", "--requirement", lock], "install the locked packages", root, environ)
    packages.keep(root, packages.key(lock.read_bytes()), venv)


def _install_project(repository: Path, venv: Path, root: Path, environ: Mapping[str, str]) -> None:
    options: list[str | Path] = ["--no-build-isolation", "--no-deps", "--editable", repository]
    _pip(venv, options, "install hedgerow itself", root, environ)


def _pip(venv: Path, options: Sequence[str | Path], purpose: str, root: Path, environ: Mapping[str, str]) -> None:
    pip = [venv / "bin" / "python", "-m", "pip", "install", "--disable-pip-version-check", *options]
    children.run("pip", pip, purpose=purpose, log=root / "logs" / "venv.log", environ=environ)


def _build_library(repository: Path, venv: Path, environ: Mapping[str, str]) -> None:
    """Build the compiled backend again if its sources have changed; where that fails numpy goes on, and we say so."""
    build = repository / "native" / "build.py"
    if build.is_file():
        done = subprocess.run(
            [venv / "bin" / "python", build], capture_output=True, text=True, check=False, env=environ
        )
        if done.returncode:
            say(f"  {done.stderr.strip()}")


def create_venv(folder: Path, root: Path, environ: Mapping[str, str]) -> None:
    """Make an empty venv with pip, getting Debian's missing half of Python first where need be."""
    if not _has_ensurepip(environ):
        package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
        if not debian.install((package,), (), root, environ):
            raise Problem(
                f"This Python ({BASE_PYTHON}) cannot make virtual environments: install the package "
                f"{package} (or use another Python >= 3.11) and run the same command again."
            )
    children.run(
        "python",
        [BASE_PYTHON, "-m", "venv", "--clear", folder],
        purpose=f"make the venv {folder}",
        log=root / "logs" / "venv.log",
        environ=environ,
    )


def _has_ensurepip(environ: Mapping[str, str]) -> bool:
    code = "import ensurepip, venv; print('both are here')"
    return "both are here" in (children.answer_of([BASE_PYTHON, "-c", code], environ) or "")


def _runs(venv: Path) -> bool:
    answer = children.answer_of(
        [venv / "bin" / "python", "-c", "import platform, pip; print(platform.python_version())"]
    )
    return (answer or "").strip() == platform.python_version()


def _read(path: Path) -> str | None:
    return path.read_text().strip() if path.is_file() else None


def write_lock(repository: Path, root: Path, environ: Mapping[str, str], newest: str) -> str:
    """Write hack/requirements/dev.txt anew with uv, taking nothing published after `newest` (YYYY-MM-DD)."""
    uv = _obtain_uv(root, environ)
    output = repository / "hack" / "requirements" / "dev.txt"
    options = ["--universal", "--generate-hashes", "--no-emit-index-url", "--no-header", "--no-annotate"]
    options += ["--upgrade", "--python-version", "3.11", "--extra", "dev", "--exclude-newer", newest]
    target = str(output.relative_to(repository))
    children.run(
        "uv",
        [uv, "pip", "compile", *options, "--output-file", target, "pyproject.toml"],
        purpose="resolve the development packages",
        log=root / "logs" / "lock.log",
        cwd=repository,
        environ=environ,
    )
    return f"lock  {output} (nothing newer than {newest})"


def _obtain_uv(root: Path, environ: Mapping[str, str]) -> Path:
    if found := shutil.which("uv", path=environ.get("PATH")):
        return Path(found)
    folder = root / "uv"
    with step_lock(root, "uv"):
        if children.answer_of([folder / "bin" / "uv", "--version"]) is None:
            create_venv(folder, root, environ)
            children.run(
                "pip",
                [folder / "bin" / "python", "-m", "pip", "install", "uv"],
                purpose="get uv from PyPI",
                log=root / "logs" / "uv.log",
                environ=environ,
            )
    return folder / "bin" / "uv"
