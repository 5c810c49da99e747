"""Files with keys and passwords in them."""

from pathlib import Path


def write_private(path: Path, text: str) -> Path:
    """Write a file that only its owner can read, and give its path."""
    path.touch(mode=0o600)
    path.write_text(text)
    return path
