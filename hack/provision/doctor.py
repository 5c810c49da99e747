"""Says what is here, what is missing, and what `hack/setup` would do about it. Changes nothing."""

import platform
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from provision import cache, debian, golang
from provision.find import resolve
from provision.problems import Problem
from provision.programs import BUNDLES, PROGRAMS, USUAL, DebianBundle, GoBundle
from provision.versions import go_directive, written


def examine(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the findings, a line each."""
    root = cache.cache_root(environ)
    yield f"Python   {platform.python_version()}"
    yield f"cache    {root} ({_free(root)} free)"
    yield f"Go       {_go(environ)}"
    yield f"Debian   packages can be had {debian.look(environ)}"
    for name in USUAL:
        yield f"{name:<24} {_program(name, environ)}"


def _free(folder: Path) -> str:
    while not folder.exists():
        folder = folder.parent
    return f"{shutil.disk_usage(folder).free / 1e9:.1f} GB"


def _go(environ: Mapping[str, str]) -> str:
    needed = max(go_directive(path.read_text()) for path in golang.MODULES.glob("*/go.mod"))
    found = shutil.which("go", path=environ.get("PATH"))
    version = golang.go_version(Path(found), environ) if found else None
    if version and version >= needed:
        return f"{written(version)} at {found}"
    return f"{written(needed)} is needed and not on PATH: would come from PyPI when something has to be built"


def _program(name: str, environ: Mapping[str, str]) -> str:
    try:
        choice = resolve(PROGRAMS[name], environ, thorough=True)
    except Problem as problem:
        return str(problem)
    passed_over = "".join(f"; {reason}" for reason in choice.passed_over)
    if choice.binary is not None:
        return f"{choice.binary.version}  {choice.binary.path}  from {choice.binary.source}{passed_over}"
    return f"missing: would be {_remedy(BUNDLES[PROGRAMS[name].bundle], environ)}{passed_over}"


def _remedy(bundle: GoBundle | DebianBundle, environ: Mapping[str, str]) -> str:
    if isinstance(bundle, GoBundle):
        return f"built from Go modules ({bundle.version})"
    return f"had from Debian {debian.look(environ)}"
