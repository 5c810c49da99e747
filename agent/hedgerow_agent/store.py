"""Everything a device remembers, in one folder: its state, the epoch counter, programs, checkpoints, what it runs.

state.json                        the machine's state, with the newest accepted sequence
epoch                             number of the newest connection
active.json                       what the device runs: base model, or which delta on top of it
programs/<digest>.json            programs by the sha256 of their bytes
jobs/<uid>/<generation>/          checkpoints and the resume file (checkpoints.py)
"""

import hashlib
import logging
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from hedgerow_agent.checkpoints import CheckpointFolder
from hedgerow_agent.files import read_bounded, remove_durably, sha256_of, write_durably
from hedgerow_agent.machine.state import STORED, Adapter, JobKey, MachineState

_STATE_LIMIT_BYTES = 16 << 20
_SMALL_LIMIT_BYTES = 64 * 1024
_ADAPTER: TypeAdapter[Adapter] = TypeAdapter(Adapter)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Store:
    """The device's folder; every method touches the disk."""

    folder: Path

    def load_state(self) -> MachineState | None:
        """Return the stored state; of one that cannot be read only the newest document's number is left."""
        file = self.folder / "state.json"
        if not file.exists():
            return self._only_what_was_accepted()
        try:
            return STORED.validate_json(read_bounded(file, _STATE_LIMIT_BYTES) or b"")
        except ValidationError as error:
            aside = file.with_suffix(".damaged")
            file.replace(aside)
            _log.error("The stored state cannot be read and was moved to %s: %s", aside, error.errors()[0]["msg"])
            return self._only_what_was_accepted()

    def save_state(self, state: MachineState) -> None:
        """Make the state durable, and before it the number below which documents are refused."""
        accepted = f"{state.observed_sequence} {state.observed_sha256}".encode()
        if read_bounded(self._accepted_file, _SMALL_LIMIT_BYTES) != accepted:
            write_durably(self._accepted_file, accepted)
        write_durably(self.folder / "state.json", STORED.dump_json(state, exclude={"volatile"}))

    @property
    def _accepted_file(self) -> Path:
        """A file of its own: whatever happens to the state, an old document must not be obeyed again."""
        return self.folder / "accepted"

    def _only_what_was_accepted(self) -> MachineState | None:
        words = (read_bounded(self._accepted_file, _SMALL_LIMIT_BYTES) or b"").decode(errors="replace").split()
        if len(words) != 2 or not words[0].isdigit():
            return None
        return MachineState(observed_sequence=int(words[0]), observed_sha256=words[1])

    def next_epoch(self) -> int:
        """Count one connection more, durably, and return its number."""
        file = self.folder / "epoch"
        text = (read_bounded(file, _SMALL_LIMIT_BYTES) or b"0").strip()
        epoch = int(text) + 1 if text.isdigit() else 1
        write_durably(file, str(epoch).encode())
        return epoch

    def active(self) -> Adapter | None:
        """Return what the device runs, or None before the first model came."""
        content = read_bounded(self.folder / "active.json", _SMALL_LIMIT_BYTES)
        try:
            return None if content is None else _ADAPTER.validate_json(content)
        except ValidationError:
            _log.error("What the device ran is not known any more: %s cannot be read.", self.folder / "active.json")
            return None

    def swap_adapter(self, adapter: Adapter) -> str:
        """Make an adapter the active one; return why not if its file is not whole."""
        if adapter.checkpoint is not None:
            found = self.checkpoints(adapter.job).find(adapter.checkpoint)
            if isinstance(found, str):
                return found
        write_durably(self.folder / "active.json", _ADAPTER.dump_json(adapter))
        return ""

    def program_file(self, digest: str) -> Path:
        """Return where a program is, or will be."""
        return self.folder / "programs" / f"{digest}.json"

    def has_program(self, digest: str) -> bool:
        """Whether the program is there and is the one its name says."""
        return sha256_of(self.program_file(digest)) == digest

    def save_program(self, encoded: bytes) -> str:
        """Keep an encoded program and return its digest."""
        digest = hashlib.sha256(encoded).hexdigest()
        write_durably(self.program_file(digest), encoded)
        return digest

    def checkpoints(self, job: JobKey) -> CheckpointFolder:
        """Return the checkpoints of a job and generation."""
        return CheckpointFolder(self.folder / "jobs" / job.job_uid / str(job.generation))

    def forget_others(self, kept: JobKey, program: str) -> None:
        """Remove the folders of other jobs and generations, and their programs."""
        for folder in self.folder.glob("jobs/*/*"):
            if folder.name.isdigit() and JobKey(folder.parent.name, int(folder.name)) != kept:
                CheckpointFolder(folder).remove()
        for file in self.folder.glob("programs/*.json"):
            if file.stem != program:
                remove_durably(file)
