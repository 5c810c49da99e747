"""Finds programs that are here already: what the developer names, then PATH, then our cache. Gets nothing."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from provision import cache, children, debian, golang
from provision.problems import Problem
from provision.programs import BUNDLES, PROGRAMS, GoBundle, Program
from provision.sources import Binary, Candidate, Choice, Origin, choose

SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Looked into after PATH: Debian puts mosquitto there, and an ordinary user's PATH has none of them."""


def locate(name: str, environ: Mapping[str, str] | None = None) -> Binary:
    """Return a program that is here and good, or raise a Problem that says how to get it."""
    program = PROGRAMS.get(name)
    if program is None:
        raise Problem(f"{name!r} is none of the programs known here: {', '.join(PROGRAMS)}.")
    choice = resolve(program, os.environ if environ is None else environ, thorough=False)
    if choice.binary is None:
        why = f" ({'; '.join(choice.passed_over)})" if choice.passed_over else ""
        raise Problem(f"There is no usable {name} on this machine{why}: run `hack/setup servers {name}` to get it.")
    return choice.binary


def locate_broker(environ: Mapping[str, str] | None = None) -> Binary:
    """Return mosquitto, or the Go broker on a machine where mosquitto could not be had."""
    try:
        return locate("mosquitto", environ)
    except Problem as no_mosquitto:
        try:
            return locate("mochi", environ)
        except Problem:
            raise no_mosquitto from None


def resolve(program: Program, environ: Mapping[str, str], thorough: bool) -> Choice:
    """Decide among the copies on this machine; thorough also reads and runs what is in the cache."""
    return choose(program, candidates(program, environ, thorough))


def candidates(program: Program, environ: Mapping[str, str], thorough: bool) -> Iterator[Candidate]:
    """Look at one copy after the other, in the order in which they are preferred."""
    if assets := environ.get("KUBEBUILDER_ASSETS"):
        path = Path(assets) / program.name
        if path.exists():
            yield _asked(program, Origin.NAMED, path)
    for path in _on_path(program.name, environ):
        yield _asked(program, Origin.PATH, path)
    if (cached := _cached(program, environ, thorough)) is not None:
        yield cached


def _on_path(name: str, environ: Mapping[str, str]) -> Iterator[Path]:
    folders = [*environ.get("PATH", os.defpath).split(os.pathsep), *SYSTEM_FOLDERS]
    seen: set[Path] = set()
    for folder in folders:
        path = Path(folder or ".").absolute() / name
        if path.is_file() and os.access(path, os.X_OK) and path.resolve() not in seen:
            seen.add(path.resolve())
            yield path


def _asked(program: Program, origin: Origin, path: Path) -> Candidate:
    answer = children.answer_of([path, *program.ask])
    found = re.search(program.answer, answer, re.MULTILINE) if answer else None
    if found is None:
        return Candidate(origin, path, "", f"it does not run or does not answer `{' '.join(program.ask)}`")
    return Candidate(origin, path, found[1] if found.groups() else "unversioned")


def cache_folder(program: Program, environ: Mapping[str, str]) -> Path:
    """Say where the cache entry of a program's bundle belongs."""
    bundle = BUNDLES[program.bundle]
    key = golang.key(bundle) if isinstance(bundle, GoBundle) else debian.key(bundle)
    return cache.entry_folder(cache.cache_root(environ), bundle.name, key)


def _cached(program: Program, environ: Mapping[str, str], thorough: bool) -> Candidate | None:
    folder = cache_folder(program, environ)
    path = folder / program.name
    entry = cache.read_entry(folder)
    if entry is None:
        return None
    if isinstance(entry, str):
        return Candidate(Origin.CACHE, path, "", entry)
    fault = entry.fault(thorough)
    if fault is None and thorough:
        fault = _asked(program, Origin.CACHE, path).fault
    return Candidate(Origin.CACHE, path, entry.version, fault, entry.origin)
