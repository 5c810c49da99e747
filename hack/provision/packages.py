"""Installed packages, kept under the lock they came from: another clone links them instead of installing them again.

What is kept is a venv without its Python and without hedgerow itself. Files are links where the disk allows it, so they
take no room; a file that somebody has edited since has another time, and then nothing of it is used.
"""

import json
import os
import platform
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from provision import cache
from provision.locks import step_lock

FOLDER = "packages"
_MADE_BY_VENV = ("bin/activate", "bin/Activate.ps1")
"""What every venv has of its own in its folders, by how its path begins; so are all files beside them."""


def key(lock: bytes) -> str:
    """Name what packages depend on: the lock, and the Python and machine they were installed for."""
    machine = (sys.version, sysconfig.get_platform(), platform.libc_ver())
    return cache.key_of([lock, repr(machine).encode()])


def keep(root: Path, key: str, venv: Path) -> None:
    """Keep the packages of a venv, in the place of those of an older lock."""
    final = cache.entry_folder(root, FOLDER, key)
    with step_lock(root, FOLDER):
        if _manifest(final) is not None:
            return
        shutil.rmtree(final.parent, ignore_errors=True)
        partial = cache.begin(final)
        for name in _files(venv):
            _link(venv / name, partial / name)
        files = {name: _traits(partial / name) for name in _files(partial)}
        (partial / cache.MANIFEST).write_text(json.dumps({"venv": str(venv), "files": files}))
        partial.rename(final)


def restore(root: Path, key: str, venv: Path) -> bool:
    """Put the packages kept under a key into an empty venv; False if there are none, or not as they were."""
    final = cache.entry_folder(root, FOLDER, key)
    with step_lock(root, FOLDER):
        manifest = _manifest(final)
        if manifest is None:
            return False
        place, files = manifest
        for name in files:
            if not _adapt_script(final / name, venv / name, place, venv):
                _link(final / name, venv / name)
    return True


def _manifest(final: Path) -> tuple[str, dict[str, list[int]]] | None:
    """Return where packages were installed first, and their files, if every one of them is as it was."""
    try:
        told = json.loads((final / cache.MANIFEST).read_text())
        place, files = str(told["venv"]), dict(told["files"])
        intact = all(_traits(final / name) == traits for name, traits in files.items())
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return (place, files) if intact else None


def _files(folder: Path) -> Iterator[str]:
    """Yield the plain files of a folder that `python -m venv` does not make itself."""
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(place, name)
            relative = str(path.relative_to(folder))
            if os.sep in relative and not path.is_symlink() and not relative.startswith(_MADE_BY_VENV):
                yield relative


def _traits(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:  # another disk, or one that has no links
        shutil.copy2(source, target)


def _adapt_script(source: Path, target: Path, place: str, venv: Path) -> bool:
    """Write a program of `bin` that names the venv it was made in, so that it names this one; False if it does not."""
    if source.parent.name != "bin":
        return False
    content = source.read_bytes()
    if not content.startswith(b"#!" + os.fsencode(place)):
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content.replace(os.fsencode(place), os.fsencode(venv)))
    shutil.copymode(source, target)
    return True
