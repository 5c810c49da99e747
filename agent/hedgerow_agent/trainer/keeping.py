"""What a job leaves on disk and goes on from: its checkpoints, and the resume file beside the newest one.

What diverged is refused before anything is written, so that both are always those of a model that works.
"""

from pathlib import Path

from hedgerow_agent.checkpoints import CheckpointFolder, Resume, ResumeHeader, StreamMark, checkpoint_id
from hedgerow_agent.core.errors import NonFiniteModel
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.initial import all_finite
from hedgerow_agent.trainer import deltas
from hedgerow_agent.trainer.protocol import Start
from hedgerow_agent.trainer.tally import Tally
from hedgerow_plans.protocol.messages import CheckpointReport


class Keeping:
    """The folder of one job and generation."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._folder = CheckpointFolder(Path(start.folder))

    def find_resume(self, resident_bytes: int) -> Resume | None:
        """Return the resume file if it is whole and belongs to this very job."""
        resume = self._folder.read_resume()
        if resume is None or resume.header.resident_bytes != resident_bytes or not self._is_ours(resume.header):
            return None
        return resume

    def restore(self, executor: Executor, resume: Resume | None, tally: Tally) -> None:
        """Load the resume file, else the checkpoint named, else nothing; note the step it belongs to."""
        tally.step = 0
        if resume is not None:
            executor.load_resident_state(resume.residents)
            tally.step = resume.header.step
            return
        named = self._start.from_checkpoint
        report = self._folder.find(named) if named else "none was named"
        content = self._folder.read_delta(named) if named else None
        if named is None or content is None or isinstance(report, str):
            return
        executor.load_delta(deltas.decode_delta(content, named))
        tally.accuracy_now = report.accuracy
        tally.step = report.step

    def encode(self, executor: Executor, step: int, accuracy: float | None) -> bytes:
        """Return the delta as a file, unless a number in it is none."""
        trained = executor.delta()
        for name, tensor in trained.items():
            if not all_finite(tensor):
                raise NonFiniteModel(step, f"{name} holds NaN or infinity")
        return deltas.encode_delta(trained, self._start, step, accuracy)

    def write(self, executor: Executor, delta: bytes, step: int, tally: Tally) -> CheckpointReport:
        """Write delta and resume file durably; raise OSError where the disk does not take them."""
        # The delta first: going on from an older resume file writes the same delta again, to the last bit.
        report = self._folder.add(checkpoint_id(step), step, delta, tally.accuracy_now)
        self.write_resume(executor, step, tally)
        return report

    def write_resume(self, executor: Executor, step: int, tally: Tally, stream: StreamMark | None = None) -> None:
        """Write where training stands, durably."""
        header = self._header(step, executor.program.resident_bytes, tally, stream)
        self._folder.write_resume(header, executor.resident_view())

    def in_words(self) -> str:
        """Return a sentence about what is there when a job ends before its time."""
        kept, header = self._folder.good(), self._folder.resume_header()
        if not kept:
            return "The base model is unchanged."
        goes_on = header is not None and header.step == kept[-1].step and self._is_ours(header)
        return f"The checkpoint {kept[-1].id} is kept{' and the same job goes on from there' if goes_on else ''}."

    def _is_ours(self, header: ResumeHeader) -> bool:
        start = self._start
        wanted = (start.job_uid, start.generation, start.program_digest, start.weights_sha256, start.seed)
        found = (header.job_uid, header.generation, header.program_digest, header.weights_sha256, header.seed)
        return wanted == found

    def _header(self, step: int, resident_bytes: int, tally: Tally, stream: StreamMark | None) -> ResumeHeader:
        start = self._start
        return ResumeHeader(
            job_uid=start.job_uid,
            generation=start.generation,
            program_digest=start.program_digest,
            weights_sha256=start.weights_sha256,
            seed=start.seed,
            step=step,
            resident_bytes=resident_bytes,
            stream=stream,
            **tally.carried_over(),
        )
