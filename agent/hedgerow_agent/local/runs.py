"""A folder of results: which run is in it, and how another one takes its place without anything being lost."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from hedgerow_agent.checkpoints import CheckpointFolder
from hedgerow_agent.files import flush_folder, read_bounded, remove_durably, write_durably
from hedgerow_agent.local.problems import Problem
from hedgerow_agent.local.record import PROGRAM, Record, differences
from hedgerow_plans import codec

_CHECKPOINTS, _PROGRAM_FILE, _RECORD_FILE = "checkpoints", "program.json", "run.json"
_RECORD_LIMIT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Where the program, the record and the checkpoints of one run are."""

    path: Path

    @property
    def program_file(self) -> Path:
        """The program that the run trains."""
        return self.path / _PROGRAM_FILE

    @property
    def checkpoints(self) -> CheckpointFolder:
        """What the run has learnt so far."""
        return CheckpointFolder(self.path / _CHECKPOINTS)

    def record(self) -> Record | None:
        """Return what is known of the run in here, or None if nothing can be read."""
        content = read_bounded(self.path / _RECORD_FILE, _RECORD_LIMIT_BYTES)
        try:
            return None if content is None else Record.model_validate_json(content)
        except ValidationError:
            return None

    def is_empty(self) -> bool:
        """Whether no run has learnt anything in here."""
        return self.checkpoints.is_empty()

    def planned(self, request: str) -> bytes | None:
        """Return the program that was planned in here for the very same request, if it is whole."""
        record, content = self.record(), read_bounded(self.program_file, codec.MOST_BYTES)
        if record is None or content is None or record.request != request:
            return None
        return content if record.facts.get(PROGRAM) == codec.digest(content) else None

    def what_is_another(self, record: Record) -> str:
        """Return what the run in here differs in, in a few words; empty if it is the same run."""
        kept, resume = self.record(), self.checkpoints.resume_header()
        if kept is not None and (told := differences(kept.facts, record.facts)):
            return told
        uids = {known.uid for known in (kept,) if known} | {known.job_uid for known in (resume,) if known}
        return "" if uids == {record.uid} else "its settings are not known"

    def set_aside(self) -> Path:
        """Move the run in here into a folder of its own and return that; nothing of it is changed."""
        # The checkpoints go last: after a power cut before that, the same folder is filled on.
        number = next(number for number in range(1, 1 << 30) if not self._earlier(number, _CHECKPOINTS).exists())
        earlier = self._earlier(number)
        earlier.mkdir(exist_ok=True)
        for name in (_PROGRAM_FILE, _RECORD_FILE, _CHECKPOINTS):
            with contextlib.suppress(FileNotFoundError):
                (self.path / name).rename(earlier / name)
        flush_folder(earlier)
        flush_folder(self.path)
        return earlier

    def write(self, record: Record, program: bytes) -> None:
        """Say durably which run is in here."""
        self.checkpoints.path.mkdir(exist_ok=True)
        if read_bounded(self.program_file, codec.MOST_BYTES) != program:
            write_durably(self.program_file, program)
        if self.record() != record:
            write_durably(self.path / _RECORD_FILE, record.model_dump_json().encode())

    def _earlier(self, number: int, name: str = "") -> Path:
        return self.path / f"earlier-{number}" / name


class Arrival:
    """A run on its way into a folder: one that is there already stays until the new one is known to begin."""

    def __init__(self, folder: RunFolder, record: Record, program: bytes, reason: str) -> None:
        self._folder, self._record, self._program, self._reason = folder, record, program, reason
        self._waiting_file = folder.path / "next-program.json"
        self.program_file = self._waiting_file if reason else folder.program_file
        with _told(folder.path):
            if reason:
                self._waiting_file.write_bytes(program)
            else:
                folder.write(record, program)

    def begin(self) -> str:
        """Take the place of the run before, and return a sentence about it; empty if there was none."""
        reason, self._reason = self._reason, ""
        if not reason:
            return ""
        with _told(self._folder.path):
            earlier = self._folder.set_aside()
            self._folder.write(self._record, self._program)
        return f"{self._folder.path} holds an earlier run ({reason}); that is set aside in {earlier.name}/."

    def end(self) -> None:
        """Remove what only the way in needed."""
        with contextlib.suppress(OSError):
            remove_durably(self._waiting_file)


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[RunFolder]:
    """Make a folder and keep every other run out of it."""
    with _told(folder):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # some file systems know no locks
            _lock(descriptor, folder)
        yield RunFolder(folder)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Problem(f"Another training writes to {folder}; wait for its end, or name another with --out.") from None


@contextlib.contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Problem(
            f"Nothing can be written to {folder}: {error.strerror}. Name another folder with --out, or free some space."
        ) from None
