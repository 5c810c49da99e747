"""The cache folder: finished bundles with checksums beside them, and nothing half-written under a final name.

An entry is a folder `bundles/<name>/<key>`; the key covers everything the bundle was made from, so a changed
pin is another entry. It appears by one rename of a finished folder. It builds nothing and knows no versions.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

MANIFEST = "manifest.json"
PARTIAL = ".partial-"
BROKEN = ".broken-"


def cache_root(environ: Mapping[str, str]) -> Path:
    """Say where the cache is: HEDGEROW_CACHE, else `hedgerow` in XDG_CACHE_HOME, else in ~/.cache."""
    if named := environ.get("HEDGEROW_CACHE"):
        return Path(named).absolute()
    base = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME") or Path.home()) / ".cache")
    return Path(base).absolute() / "hedgerow"


def key_of(parts: Iterable[bytes]) -> str:
    """Make one short key of everything a bundle is made from."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Entry:
    """A bundle in the cache, as its manifest tells it; `files` maps a relative path to (bytes, sha256)."""

    folder: Path
    version: str
    origin: str
    files: Mapping[str, tuple[int, str]]

    def fault(self, thorough: bool) -> str | None:
        """Say what is wrong with the files, or None; thorough reads every byte, else only sizes count."""
        for name, (size_bytes, sha256) in self.files.items():
            path = self.folder / name
            if not path.is_file():
                return f"{path} is missing"
            if path.stat().st_size != size_bytes:
                return f"{path} has {path.stat().st_size} bytes instead of {size_bytes}"
            if thorough and sha256_of(path) != sha256:
                return f"{path} has been altered: its sha256 is not the one written down when it was made"
        return None


def sha256_of(path: Path) -> str:
    """Read a file and return its sha256."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def entry_folder(root: Path, bundle: str, key: str) -> Path:
    """Say where the entry of a bundle belongs."""
    return root / "bundles" / bundle / key


def read_entry(folder: Path) -> Entry | str | None:
    """Read an entry: None when there is none, a sentence fragment when its manifest cannot be used."""
    if not folder.exists():
        return None
    try:
        told = json.loads((folder / MANIFEST).read_text())
        files = {str(name): (int(size), str(sha256)) for name, (size, sha256) in told["files"].items()}
        return Entry(folder, str(told["version"]), str(told["origin"]), files)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{folder / MANIFEST} cannot be read ({type(error).__name__})"


def begin(final: Path) -> Path:
    """Make an empty folder beside an entry to be and clear up after killed runs; call under the lock."""
    final.parent.mkdir(parents=True, exist_ok=True)
    for left_over in [*final.parent.glob(f"{PARTIAL}*"), *final.parent.glob(f"{BROKEN}*")]:
        shutil.rmtree(left_over, ignore_errors=True)
    partial = final.parent / f"{PARTIAL}{os.getpid()}"
    partial.mkdir()
    return partial


def publish(partial: Path, final: Path, version: str, origin: str) -> Entry:
    """Write the manifest of a finished folder and give it its final name in one step."""
    plain = sorted(path for path in partial.rglob("*") if path.is_file() and not path.is_symlink())
    files = {str(path.relative_to(partial)): (path.stat().st_size, sha256_of(path)) for path in plain}
    for path in plain:
        _flush(path)
    manifest = partial / MANIFEST
    manifest.write_text(json.dumps({"version": version, "origin": origin, "files": files}, indent=1) + "\n")
    _flush(manifest)
    if final.exists():
        final.rename(final.parent / f"{BROKEN}{os.getpid()}")
    partial.rename(final)
    _flush(final.parent)
    shutil.rmtree(final.parent / f"{BROKEN}{os.getpid()}", ignore_errors=True)
    return Entry(final, version, origin, files)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
