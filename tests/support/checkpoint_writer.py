"""Writes checkpoints and resume files as fast as it can and announces each, to be killed at any moment."""

import sys
from pathlib import Path

from hedgerow_agent.checkpoints import CheckpointFolder, ResumeHeader, checkpoint_id


def main() -> None:
    """Write until killed; every line printed names a checkpoint that must never be lost."""
    folder = CheckpointFolder(Path(sys.argv[1]))
    step = int(sys.argv[2])
    while True:
        step += 1
        report = folder.add(checkpoint_id(step), step, step.to_bytes(4, "little") * 20_000, step / 1e6)
        residents = step.to_bytes(4, "little") * 5_000
        header = ResumeHeader(
            job_uid="job",
            generation=1,
            program_digest="a" * 64,
            weights_sha256="b" * 64,
            seed=0,
            step=step,
            resident_bytes=len(residents),
        )
        folder.write_resume(header, residents)
        sys.stdout.write(f"{report.id} {report.sha256}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
