"""One run: settle what is wanted, hand it to the trainer's own job, and gather what it came to."""

from argparse import Namespace
from pathlib import Path

from hedgerow_agent.checkpoints import CheckpointFolder
from hedgerow_agent.local.bar import Bar
from hedgerow_agent.local.command import on_interrupt
from hedgerow_agent.local.problems import Problem
from hedgerow_agent.local.streaming import StreamRun
from hedgerow_agent.local.summary import Outcome
from hedgerow_agent.local.terminal import Terminal
from hedgerow_agent.local.wanted import Wanted, identity, settle
from hedgerow_agent.trainer.job import run_job
from hedgerow_agent.trainer.loading import Unfit, load_program
from hedgerow_agent.trainer.protocol import Ready, Start
from hedgerow_plans import codec
from hedgerow_plans.plan import Program
from hedgerow_plans.protocol.messages import Progress

_MEASURED_STEPS = 2
_BAR_SECONDS = 0.1


def train(options: Namespace) -> Outcome:
    """Train what the command line asks for; raise a Problem if that does not come to its end."""
    wanted = settle(options)
    folder = options.out or Path("hedgerow-train") / wanted.name
    start = _start(wanted, options, folder)
    checkpoints = CheckpointFolder(Path(start.folder))
    if options.fresh:
        checkpoints.drop_after(-1)
        checkpoints.drop_progress(-1)
    if options.stream:
        return _outcome(wanted, start, *_streamed(wanted, start, options))
    bar = Bar()
    terminal = Terminal(wanted.budget_bytes, checkpoints, wanted.checkpoints_kept, bar)
    on_interrupt(terminal.interrupt)
    run_job(start, terminal)
    bar.clear()
    if terminal.progress is None or terminal.ready is None or not terminal.complete:
        raise Problem("The trainer ended without a word; this is a bug.")
    return _outcome(wanted, start, terminal.ready, terminal.progress)


def _streamed(wanted: Wanted, start: Start, options: Namespace) -> tuple[Ready, Progress]:
    run = StreamRun(start, program_in(start), wanted.budget_bytes, wanted.checkpoints_kept, options)

    def interrupt(*_: object) -> None:
        run.interrupted = True

    on_interrupt(interrupt)
    return run.go()


def _start(wanted: Wanted, options: Namespace, folder: Path) -> Start:
    program_file = folder / "program.json"
    try:
        (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
        program_file.write_bytes(wanted.program)
    except OSError as error:
        raise Problem(
            f"Nothing can be written to {folder}: {error.strerror}. Name another folder with --out."
        ) from None
    return Start(
        job_uid=identity(wanted, options.data, tuple(options.augment)),
        generation=1,
        program_file=str(program_file),
        program_digest=codec.digest(wanted.program),
        weights_file=str(wanted.weights.file or ""),
        weights_sha256=wanted.weights.sha256,
        dataset_file=str(options.data),
        folder=str(folder / "checkpoints"),
        epochs=wanted.epochs,
        seed=wanted.seed,
        learning_rate=wanted.learning_rate,
        schedule=wanted.schedule,
        backend=wanted.backend,
        augment=tuple(options.augment),
        checkpoint_every_steps=wanted.checkpoint_every_steps,
        measured_steps=_MEASURED_STEPS,
        progress_seconds=_BAR_SECONDS,
    )


def _outcome(wanted: Wanted, start: Start, ready: Ready, progress: Progress) -> Outcome:
    folder = Path(start.folder)
    good = CheckpointFolder(folder).good()
    return Outcome(
        program=program_in(start),
        digest=start.program_digest,
        knows_energy=wanted.knows_energy,
        progress=progress,
        checkpoint=good[-1] if good else None,
        folder=folder,
        ready=ready,
    )


def program_in(start: Start) -> Program:
    """Return the program of a run."""
    try:
        return load_program(Path(start.program_file), start.program_digest)
    except Unfit as error:
        raise Problem(str(error)) from None
