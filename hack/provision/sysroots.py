"""The C library of another machine, so that its programs run under qemu: Debian's, installed or unpacked."""

import os
from collections.abc import Mapping
from pathlib import Path

from provision import cache, debian
from provision.debian import Way
from provision.locks import step_lock
from provision.problems import Problem, os_errors_as_problems
from provision.programs import SYSROOTS
from provision.progress import say

SYSTEM = Path("/usr")


def locate_sysroot(name: str, environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder that holds a machine's `lib`, or raise a Problem that says how to get it."""
    found = _find(name, os.environ if environ is None else environ)
    if found is None:
        raise Problem(f"The C library for {name} is not on this machine: run `hack/setup servers` to get it.")
    return found


def ensure_sysroot(name: str, environ: Mapping[str, str] | None = None) -> Path:
    """Return the same, unpacked into the cache first where it is not here; no root is needed for that."""
    environ = dict(os.environ if environ is None else environ)
    root, bundle = cache.cache_root(environ), SYSROOTS[name]
    with os_errors_as_problems(root), step_lock(root, bundle.name):
        if _find(name, environ) is None:
            if debian.look(environ) is Way.NONE:
                raise Problem(
                    f"The C library for {name} cannot be had here, because there is no apt-get to get it with: "
                    f"put it into {SYSTEM / name} yourself."
                )
            say(f"the C library for {name} comes from the Debian package {bundle.packages[0]}, unpacked")
            debian.unpack(bundle, root, environ)
    return locate_sysroot(name, environ)


def _find(name: str, environ: Mapping[str, str]) -> Path | None:
    """Look where Debian installs it, then into the cache."""
    if _is_whole(SYSTEM / name):
        return SYSTEM / name
    bundle = SYSROOTS[name]
    folder = cache.entry_folder(cache.cache_root(environ), bundle.name, debian.key(bundle))
    entry = cache.read_entry(folder)
    if not isinstance(entry, cache.Entry) or entry.fault(thorough=False) is not None:
        return None
    unpacked = folder / "root" / "usr" / name
    return unpacked if _is_whole(unpacked) else None


def _is_whole(folder: Path) -> bool:
    return any(folder.glob("lib/ld-linux*.so.*")) and (folder / "lib" / "libm.so.6").exists()
