"""Programs on disk, by key: a restarted operator need not plan again even when the cluster has lost its copy.

A file is written beside its place and renamed, so that it is whole or not there. One that does not match its own digest
is as good as absent. The folder may be lost at any time.
"""

import hashlib
import logging
import os
import tempfile
import zlib
from pathlib import Path

_DIGEST_LENGTH = 64
_log = logging.getLogger(__name__)


class Memo:
    """A folder of encoded programs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, key: str) -> bytes | None:
        """Return the encoded program under a key, if it is here and whole."""
        try:
            content = self._file(key).read_bytes()
            encoded = zlib.decompress(content[_DIGEST_LENGTH:])
        except (OSError, zlib.error):
            return None
        intact = hashlib.sha256(encoded).hexdigest().encode() == content[:_DIGEST_LENGTH]
        return encoded if intact else None

    def write(self, key: str, encoded: bytes) -> None:
        """Keep an encoded program; a disk that refuses costs time later, not correctness."""
        content = hashlib.sha256(encoded).hexdigest().encode() + zlib.compress(encoded, 6)
        try:
            self._replace(self._file(key), content)
        except OSError as problem:
            _log.warning("The program %s could not be kept in %s: %s.", key[:8], self._folder, problem)

    def _file(self, key: str) -> Path:
        return self._folder / f"{key}.program"

    def _replace(self, file: Path, content: bytes) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self._folder, prefix=".new-", delete=False) as temporary:
            try:
                temporary.write(content)
                temporary.flush()
                os.fsync(temporary.fileno())
                Path(temporary.name).replace(file)
            except OSError:
                Path(temporary.name).unlink(missing_ok=True)
                raise
