"""Two arrays, x and y, in one npz file: mapped if they were stored as they are, unpacked piece by piece if not."""

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from hedgerow_agent.core.data import npy
from hedgerow_agent.core.data.source import Part, Source
from hedgerow_agent.core.errors import BadInput

_LOCAL_HEADER_BYTES = 30
_ENCRYPTED = 1  # the flag of a member that needs a password
_KINDS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # what numpy writes; others fail in ways of their own


def open_npz(path: Path) -> Part:
    """Return the part of an npz file."""
    with zipfile.ZipFile(path) as archive:
        return Part(str(path), _source(path, archive, "x"), _source(path, archive, "y"))


def _source(path: Path, archive: zipfile.ZipFile, name: str) -> Source:
    try:
        member = archive.getinfo(f"{name}.npy")
    except KeyError:
        raise BadInput(f"The dataset {path} has no array {name!r}; it needs x (samples) and y (labels).") from None
    if member.flag_bits & _ENCRYPTED:
        raise BadInput(f"The array {name!r} of {path} is encrypted; store it without a password.")
    if member.compress_type not in _KINDS:
        raise BadInput(f"The array {name!r} of {path} is packed unusually; store it with numpy.savez_compressed.")
    with archive.open(member) as stream:
        header = npy.read_header(stream, f"{member.filename} of {path}", member.file_size)
    start = _stored_at(path, member)
    if start is not None:
        return npy.mapped(path, header, start + header.length)
    return npy.streamed(_opener(path, member.filename), header, f"{name!r} of {path}")


def _opener(path: Path, member: str) -> Callable[[], IO[bytes]]:
    return lambda: zipfile.ZipFile(path).open(member)


def _stored_at(path: Path, member: zipfile.ZipInfo) -> int | None:
    """Return where an uncompressed member begins; its local header may be longer than the directory says."""
    if member.compress_type != zipfile.ZIP_STORED:
        return None
    with path.open("rb") as file:
        file.seek(member.header_offset)
        header = file.read(_LOCAL_HEADER_BYTES)
    lengths = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    return member.header_offset + _LOCAL_HEADER_BYTES + lengths
