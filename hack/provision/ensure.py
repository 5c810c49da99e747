"""Makes sure that programs are here: finds them, else builds or installs them, each step under its lock."""

import os
from collections.abc import Iterable, Mapping, Sequence

from provision import cache, debian, golang
from provision.debian import Way
from provision.find import resolve
from provision.locks import step_lock
from provision.problems import Problem, os_errors_as_problems
from provision.programs import BUNDLES, PROGRAMS, USUAL, DebianBundle, GoBundle, Program
from provision.progress import say
from provision.sources import Binary, Choice

WHY = {Way.UNPACK: " (this user is not root and `sudo -n` is refused, or HEDGEROW_DEBIAN=unpack)"}
"""What a person should know about a way that was not the first choice."""


def ensure(names: Sequence[str] = USUAL, environ: Mapping[str, str] | None = None) -> list[Binary]:
    """Return every named program, obtaining those that are not here; Problem when one cannot be had.

    Where mosquitto cannot be had the Go broker `mochi` stands in its place in the result.
    """
    environ = dict(os.environ if environ is None else environ)
    unknown = [name for name in names if name not in PROGRAMS]
    if unknown:
        raise Problem(f"{unknown[0]!r} is none of the programs known here: {', '.join(PROGRAMS)}.")
    with os_errors_as_problems(cache.cache_root(environ)):
        check_disk(names, environ)
        found = [_ensure_one(PROGRAMS[name], environ) for name in names]
    return list({binary.name: binary for binary in found}.values())


def check_disk(names: Iterable[str], environ: Mapping[str, str]) -> None:
    """Raise a Problem when the disk cannot hold what has to be built for these names; changes nothing."""
    wanted = {PROGRAMS[name].bundle: PROGRAMS[name] for name in names if name in PROGRAMS}
    missing = [
        bundle
        for name, program in wanted.items()
        if isinstance(bundle := BUNDLES[name], GoBundle) and resolve(program, environ, thorough=False).binary is None
    ]
    if missing and (problem := golang.disk_problem(missing, environ)):
        raise problem


def _ensure_one(program: Program, environ: Mapping[str, str]) -> Binary:
    choice = resolve(program, environ, thorough=True)
    if choice.binary is not None:
        return choice.binary
    bundle = BUNDLES[program.bundle]
    with step_lock(cache.cache_root(environ), bundle.name):
        choice = resolve(program, environ, thorough=True)  # another run may have done it while this one waited
        if choice.binary is not None:
            return choice.binary
        _tell(program, choice)
        stand_in = obtain(bundle, environ)
    return _ensure_one(PROGRAMS[stand_in], environ) if stand_in else _obtained(program, environ)


def _tell(program: Program, choice: Choice) -> None:
    for reason in choice.passed_over:
        say(f"  {program.name}: {reason}")
    if choice.broken is not None:
        say(f"  {program.name}: the copy in the cache is broken and is made again")


def _obtained(program: Program, environ: Mapping[str, str]) -> Binary:
    choice = resolve(program, environ, thorough=True)
    if choice.binary is None:
        why = "; ".join(choice.passed_over) or "it is not where it should be"
        raise Problem(
            f"{program.name} was obtained but is not usable ({why}): "
            f"install {program.name} yourself so that it is on PATH."
        )
    return choice.binary


def obtain(bundle: GoBundle | DebianBundle, environ: Mapping[str, str]) -> str | None:
    """Build, install or unpack a bundle; returns the program that stands in when it cannot be had."""
    root = cache.cache_root(environ)
    if isinstance(bundle, GoBundle):
        say(f"{bundle.name} {bundle.version} is built from Go modules (once; kept in {root})")
        golang.build(bundle, root, environ)
        return None
    way = debian.look(environ)
    say(f"{bundle.name} comes from the Debian packages {', '.join(bundle.packages)}, {way}{WHY.get(way, '')}")
    try:
        _from_debian(bundle, way, environ)
    except Problem as problem:
        if bundle.instead is None or debian.is_network_trouble(problem):
            raise
        say(f"  {problem} The Go broker {bundle.instead} takes its place.")
        return bundle.instead
    return None


def _from_debian(bundle: DebianBundle, way: Way, environ: Mapping[str, str]) -> None:
    root = cache.cache_root(environ)
    if way is Way.NONE:
        raise Problem(
            f"{bundle.name} cannot be had here, because there is no apt-get to get it with: "
            f"install {bundle.name} yourself so that it is on PATH."
        )
    if way is not Way.UNPACK:
        try:
            debian.install(bundle.packages, bundle.services, root, environ)
            return
        except Problem as problem:
            if debian.is_network_trouble(problem):
                raise
            say(f"  {problem} Unpacking the packages into the cache instead.")
    try:
        debian.unpack(bundle, root, environ)
    except Problem as problem:
        if debian.is_network_trouble(problem):
            raise
        raise Problem(
            f"{bundle.name} can neither be installed (this user is not root and `sudo -n` is refused) nor "
            f"unpacked (see {root / 'logs' / bundle.name}.log): have root run "
            f"`apt-get install {' '.join(bundle.packages)}`."
        ) from problem
