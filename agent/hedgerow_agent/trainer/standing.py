"""Where a job stands: what its resume file says, and whether that is this very job's."""

from hedgerow_agent.checkpoints import CheckpointFolder, Resume, ResumeHeader, StreamMark
from hedgerow_agent.trainer.protocol import Start
from hedgerow_agent.trainer.tally import Tally
from hedgerow_plans.plan import Program


def find_resume(folder: CheckpointFolder, start: Start, program: Program) -> Resume | None:
    """Return the resume file if it is whole and belongs to this very job."""
    resume = folder.read_resume()
    if resume is None:
        return None
    header = resume.header
    same = (header.job_uid, header.generation, header.program_digest, header.weights_sha256, header.seed) == (
        start.job_uid,
        start.generation,
        start.program_digest,
        start.weights_sha256,
        start.seed,
    )
    return resume if same and header.resident_bytes == program.resident_bytes else None


def resume_header(
    start: Start, program: Program, step: int, tally: Tally, stream: StreamMark | None = None
) -> ResumeHeader:
    """Return the description of a resume file written after a step."""
    return ResumeHeader(
        job_uid=start.job_uid,
        generation=start.generation,
        program_digest=start.program_digest,
        weights_sha256=start.weights_sha256,
        seed=start.seed,
        step=step,
        resident_bytes=program.resident_bytes,
        stream=stream,
        **tally.carried_over(),
    )
