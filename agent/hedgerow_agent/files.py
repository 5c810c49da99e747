"""Files that survive a power cut: written beside their place, flushed, renamed, and the folder flushed as well."""

import contextlib
import hashlib
import os
from pathlib import Path

_CHUNK_BYTES = 1 << 20
_TEMPORARY = ".new"


def write_durably(path: Path, *content: bytes | memoryview) -> None:
    """Replace a file atomically; once this returns, a power cut cannot take it back."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}{_TEMPORARY}")
    try:
        with temporary.open("wb") as file:
            for piece in content:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()  # a full disk must not be filled by what did not fit
        raise
    flush_folder(path.parent)


def remove_durably(path: Path) -> None:
    """Remove a file if it is there; once this returns, a power cut cannot bring it back."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
        flush_folder(path.parent)


def flush_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_bounded(path: Path, limit_bytes: int) -> bytes | None:
    """Return the content of a file, or None if it is missing, unreadable or larger than the limit."""
    try:
        with path.open("rb") as file:
            content = file.read(limit_bytes + 1)
    except OSError:
        return None
    return content if len(content) <= limit_bytes else None


def sha256_of(path: Path) -> str | None:
    """Return the sha256 of a file's content, or None if it cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError:
        return None
    return digest.hexdigest()
