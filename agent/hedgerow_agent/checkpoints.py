"""The checkpoints of one job and generation on disk, and the file that training resumes from.

A checkpoint is `<id>.safetensors` (the delta, with its manifest in the file's metadata) and, written after it,
`<id>.json` (size and sha256 of the former). Without the second the first does not count, so a power cut between the two
leaves no half checkpoint. Whatever is torn, altered or missing is skipped, never loaded. `resume.bin` is one line with
the sha256 of the rest, one line of JSON, and the resident bytes. No numpy here: the idle agent uses this module too.
"""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from hedgerow_agent.files import read_bounded, remove_durably, sha256_of, write_durably
from hedgerow_plans.protocol.messages import CheckpointReport, Count, Digest, EnergySource, Identifier, Message

DELTA_SUFFIX = ".safetensors"
_REPORT_SUFFIX = ".json"
_REPORT_LIMIT_BYTES = 64 * 1024
_RESUME_FILE = "resume.bin"
_RESUME_HEADER_LIMIT_BYTES = 1 << 20


def checkpoint_id(step: int) -> str:
    """Return the name of the checkpoint of a step."""
    return f"step-{step:06d}"


class StreamMark(Message):
    """How far a stream was learnt from: where its last window begins and ends, and how to know the file again."""

    inode: Annotated[int, Field(ge=0)]  # some file systems use all 64 bits
    byte: Count
    line: Count
    end: Count
    sha256: Digest  # of the last bytes before the end


class ResumeHeader(Message):
    """What the resident bytes of a resume file belong to, and the counters that go on from there."""

    job_uid: Identifier
    generation: Count
    program_digest: Digest
    weights_sha256: Digest
    seed: Count
    step: Count
    resident_bytes: Count
    accuracy_before: float | None = None
    accuracy_now: float | None = None
    measured_peaks: dict[Count, Count] = Field(default_factory=dict)  # by rung
    energy_picojoules: Count = 0
    energy_source: EnergySource = EnergySource.MODELLED
    switches_down: Count = 0
    switches_up: Count = 0
    rungs_used: tuple[Count, ...] = ()
    stream: StreamMark | None = None  # None: a dataset, or a stream that cannot be read again


@dataclass(frozen=True, slots=True)
class Resume:
    """A resume file that was read and found whole."""

    header: ResumeHeader
    residents: bytes


@dataclass(frozen=True, slots=True)
class CheckpointFolder:
    """One folder of checkpoints; every method touches the disk."""

    path: Path

    def add(self, checkpoint: str, step: int, delta: bytes, accuracy: float | None) -> CheckpointReport:
        """Write a delta durably and return what may now be announced."""
        digest = hashlib.sha256(delta).hexdigest()
        report = CheckpointReport(id=checkpoint, step=step, sha256=digest, size_bytes=len(delta), accuracy=accuracy)
        write_durably(self.delta_file(checkpoint), delta)
        write_durably(self._report_file(checkpoint), report.model_dump_json().encode())
        return report

    def delta_file(self, checkpoint: str) -> Path:
        """Return where the delta of a checkpoint is."""
        return self.path / f"{checkpoint}{DELTA_SUFFIX}"

    def find(self, checkpoint: str) -> CheckpointReport | str:
        """Return a checkpoint that is whole, or a sentence saying what is wrong with it."""
        if "/" in checkpoint or checkpoint.startswith("."):
            return f"{checkpoint!r} is not the name of a checkpoint."
        report = self._read_report(checkpoint)
        if report is None:
            return f"The checkpoint {checkpoint} is missing, or its description cannot be read."
        file = self.delta_file(checkpoint)
        size = file.stat().st_size if file.is_file() else None
        if size != report.size_bytes:
            return f"The file of checkpoint {checkpoint} has {size or 0} bytes instead of {report.size_bytes}."
        if sha256_of(file) != report.sha256:
            return f"The file of checkpoint {checkpoint} was altered: its sha256 is not {report.sha256}."
        return report

    def good(self) -> tuple[CheckpointReport, ...]:
        """Return every whole checkpoint, oldest first."""
        names = [file.stem for file in self.path.glob(f"*{_REPORT_SUFFIX}")]
        found = [report for name in names if isinstance(report := self.find(name), CheckpointReport)]
        return tuple(sorted(found, key=lambda report: report.step))

    def is_empty(self) -> bool:
        """Whether nothing in here was learnt; a resume file of step 0 holds what training began with."""
        header = self.resume_header()
        begun = {_RESUME_FILE} if header is not None and not header.step else set()
        return {file.name for file in self.path.glob("*")} <= begun

    def read_delta(self, checkpoint: str) -> bytes | None:
        """Return the delta's bytes if they are the ones that were written."""
        report = self._read_report(checkpoint)
        content = None if report is None else read_bounded(self.delta_file(checkpoint), report.size_bytes)
        if report is None or content is None or hashlib.sha256(content).hexdigest() != report.sha256:
            return None
        return content

    def discard(self, checkpoint: str) -> None:
        """Remove one checkpoint; its description goes first, so that no half checkpoint remains."""
        remove_durably(self._report_file(checkpoint))
        remove_durably(self.delta_file(checkpoint))

    def drop_old(self, keep: int) -> None:
        """Remove all whole checkpoints but the newest."""
        for old in self.good()[:-keep]:
            self.discard(old.id)

    def drop_after(self, step: int) -> None:
        """Remove the checkpoints after a step, and what is no whole checkpoint; nobody may be writing one."""
        kept = {report.id for report in self.good() if report.step <= step}
        names = {file.stem for file in self.path.glob(f"*{DELTA_SUFFIX}")}
        names |= {file.stem for file in self.path.glob(f"*{_REPORT_SUFFIX}")}
        for name in names - kept:
            self.discard(name)

    def write_resume(self, header: ResumeHeader, residents: bytes | memoryview) -> None:
        """Replace the resume file."""
        body = header.model_dump_json().encode() + b"\n"
        digest = hashlib.sha256(body)
        digest.update(residents)
        write_durably(self.path / _RESUME_FILE, digest.hexdigest().encode() + b"\n", body, residents)

    def read_resume(self) -> Resume | None:
        """Return what the resume file holds, or None if there is none that is whole."""
        header = self.resume_header()
        if header is None:
            return None
        limit = _RESUME_HEADER_LIMIT_BYTES + header.resident_bytes
        content = read_bounded(self.path / _RESUME_FILE, limit) or b""
        expected, _, rest = content.partition(b"\n")
        if hashlib.sha256(rest).hexdigest().encode() != expected:
            return None
        _, _, residents = rest.partition(b"\n")
        return Resume(header, residents) if len(residents) == header.resident_bytes else None

    def resume_header(self) -> ResumeHeader | None:
        """Return the description of the resume file without reading, or checking, the rest."""
        try:
            with (self.path / _RESUME_FILE).open("rb") as file:
                file.readline(_RESUME_HEADER_LIMIT_BYTES)
                return ResumeHeader.model_validate_json(file.readline(_RESUME_HEADER_LIMIT_BYTES))
        except (OSError, ValidationError):
            return None

    def drop_progress(self, after_step: int) -> None:
        """Remove the resume file if it is later than a step, or if nobody can tell."""
        header = self.resume_header()
        if header is None or header.step > after_step:
            remove_durably(self.path / _RESUME_FILE)

    def remove(self) -> None:
        """Remove the folder with everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _report_file(self, checkpoint: str) -> Path:
        return self.path / f"{checkpoint}{_REPORT_SUFFIX}"

    def _read_report(self, checkpoint: str) -> CheckpointReport | None:
        content = read_bounded(self._report_file(checkpoint), _REPORT_LIMIT_BYTES)
        try:
            report = None if content is None else CheckpointReport.model_validate_json(content)
        except ValidationError:
            return None
        return report if report is not None and report.id == checkpoint else None
