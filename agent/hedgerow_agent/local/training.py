"""One run: settle what is wanted, hand it to the trainer's own job, and gather what it came to."""

import sys
from argparse import Namespace
from pathlib import Path

from hedgerow_agent.checkpoints import checkpoint_id
from hedgerow_agent.local.bar import Bar
from hedgerow_agent.local.command import on_interrupt
from hedgerow_agent.local.identity import record_of
from hedgerow_agent.local.problems import Problem
from hedgerow_agent.local.record import Record
from hedgerow_agent.local.runs import Arrival, RunFolder, alone_in
from hedgerow_agent.local.streaming import StreamRun
from hedgerow_agent.local.summary import Outcome
from hedgerow_agent.local.terminal import Terminal
from hedgerow_agent.local.wanted import Wanted, settle
from hedgerow_agent.trainer.job import run_job
from hedgerow_agent.trainer.loading import Unfit, load_program
from hedgerow_agent.trainer.protocol import Ready, Start
from hedgerow_plans import codec
from hedgerow_plans.plan import Program
from hedgerow_plans.protocol.messages import CheckpointReport, Progress

_MEASURED_STEPS = 2
_BAR_SECONDS = 0.1


def train(options: Namespace) -> Outcome:
    """Train what the command line asks for; raise a Problem if that does not come to its end."""
    wanted = settle(options)
    record = record_of(wanted, options)
    with alone_in(wanted.folder) as folder:
        arrival = Arrival(folder, record, wanted.encoded, _why_aside(folder, record, options))
        try:
            if options.fresh:
                _begin(arrival)
            start = _start(wanted, options, record, arrival, folder)
            run = _streamed if options.stream else _trained
            ready, progress = run(wanted, start, options, arrival, folder)
        finally:
            arrival.end()
        return _outcome(wanted, start, ready, progress, folder)


def _why_aside(folder: RunFolder, record: Record, options: Namespace) -> str:
    """Return why a run that is in a folder is not gone on with; empty if it is, or if there is none."""
    if folder.is_empty():
        return ""
    if options.fresh:
        return "--fresh begins anew"
    return folder.what_is_another(record)


def _begin(arrival: Arrival) -> None:
    if told := arrival.begin():
        sys.stderr.write(f"{told}\n")


def _trained(
    wanted: Wanted, start: Start, _options: Namespace, arrival: Arrival, folder: RunFolder
) -> tuple[Ready, Progress]:
    bar = Bar()

    def begin() -> None:
        # Until now Ctrl-C ended it at once; from now on it waits for the end of a batch.
        on_interrupt(terminal.interrupt)
        _begin(arrival)

    terminal = Terminal(wanted.budget_bytes, folder.checkpoints, wanted.checkpoints_kept, bar, begin)
    try:
        run_job(start, terminal)
    finally:
        bar.clear()
    if terminal.progress is None or terminal.ready is None or not terminal.complete:
        raise Problem("The trainer ended without a word; this is a bug.")
    return terminal.ready, terminal.progress


def _streamed(
    wanted: Wanted, start: Start, options: Namespace, arrival: Arrival, _folder: RunFolder
) -> tuple[Ready, Progress]:
    run = StreamRun(start, program_in(start), wanted.budget_bytes, wanted.checkpoints_kept, options)

    def interrupt(*_: object) -> None:
        run.interrupted = True

    on_interrupt(interrupt)
    _begin(arrival)
    return run.go()


def _start(wanted: Wanted, options: Namespace, record: Record, arrival: Arrival, folder: RunFolder) -> Start:
    return Start(
        job_uid=record.uid,
        generation=1,
        program_file=str(arrival.program_file),
        program_digest=codec.digest(wanted.encoded),
        weights_file=str(wanted.weights.file or ""),
        weights_sha256=wanted.weights.sha256,
        dataset_file=str(options.data),
        folder=str(folder.checkpoints.path),
        epochs=wanted.epochs,
        seed=wanted.seed,
        learning_rate=wanted.learning_rate,
        schedule=wanted.schedule,
        backend=wanted.backend,
        augment=wanted.augmentation,
        checkpoint_every_steps=wanted.checkpoint_every_steps,
        measured_steps=_MEASURED_STEPS,
        progress_seconds=_BAR_SECONDS,
    )


def _outcome(wanted: Wanted, start: Start, ready: Ready, progress: Progress, folder: RunFolder) -> Outcome:
    written = folder.checkpoints.find(checkpoint_id(progress.step))
    return Outcome(
        program=wanted.program,
        digest=start.program_digest,
        progress=progress,
        checkpoint=written if isinstance(written, CheckpointReport) else None,
        folder=folder.checkpoints.path,
        ready=ready,
    )


def program_in(start: Start) -> Program:
    """Return the program of a run."""
    try:
        return load_program(Path(start.program_file), start.program_digest)
    except Unfit as error:
        raise Problem(str(error)) from None
