"""What somebody wants trained: the job of a manifest, or a program with the settings that it does not hold."""

from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

from hedgerow_agent.core.data.augmentation import parse as parse_augmentation
from hedgerow_agent.core.errors import BadInput
from hedgerow_agent.core.samples import sample_shape
from hedgerow_agent.local import conflicts
from hedgerow_agent.local.base import Weights, weights_of
from hedgerow_agent.local.manifests import Manifests, is_program, read_manifests, read_program
from hedgerow_agent.local.problems import EXIT_USAGE, Problem
from hedgerow_agent.local.programs import budget_of, program_of
from hedgerow_plans import asked
from hedgerow_plans.plan import Program
from hedgerow_plans.protocol.messages import BackendName, RateSchedule, WeightsReference
from hedgerow_plans.resources.common import decimal


@dataclass(frozen=True, slots=True)
class Wanted:
    """One run, settled."""

    folder: Path
    program: Program
    encoded: bytes
    request: str | None  # what the planner was asked
    weights: Weights
    epochs: int
    seed: int
    learning_rate: str
    schedule: RateSchedule | None
    augmentation: tuple[str, ...]  # words such as "shift:2", in order
    backend: BackendName | None
    checkpoint_every_steps: int
    checkpoints_kept: int
    budget_bytes: int | None  # None: the program's first rung


def settle(options: Namespace) -> Wanted:
    """Read what the command line names, planning if there is no program; what costs little is looked at first."""
    job_is_program = is_program(options.job)
    conflicts.check(options, job_is_program)
    _check_data(options)
    wanted = _from_program(options) if job_is_program else _from_job(options, read_manifests(options.job))
    _check_augmentation(wanted)
    return wanted


def _from_job(options: Namespace, manifests: Manifests) -> Wanted:
    spec, training = manifests.job.spec, manifests.job.spec.training
    if options.stream and training.schedule is not None and training.schedule.constant is None:
        raise Problem(
            "The job's spec.training.schedule changes the rate with the steps of a run, and a stream is learnt from at "
            "one rate; leave the schedule out, or --stream."
        )
    folder = _folder(options, manifests.job.metadata.name)
    rate = _rate(options.learning_rate or training.optimizer.learning_rate)
    weights = weights_of(options, WeightsReference(uri=spec.model.weights.uri, sha256=spec.model.weights.sha256))
    planned, budget_bytes = program_of(options, manifests, folder)
    return Wanted(
        folder=folder,
        program=planned.program,
        encoded=planned.encoded,
        request=planned.request,
        weights=weights,
        epochs=training.epochs if options.epochs is None else options.epochs,
        seed=training.seed if options.seed is None else options.seed,
        learning_rate=rate,
        schedule=asked.schedule(training),
        augmentation=tuple(options.augment) or asked.augmentation(training),
        backend=asked.backend(training),
        checkpoint_every_steps=spec.checkpoint.every_steps,
        checkpoints_kept=spec.checkpoint.keep,
        budget_bytes=budget_bytes,
    )


def _from_program(options: Namespace) -> Wanted:
    if options.learning_rate is None:
        raise Problem("A program says nothing about the learning rate; add --learning-rate RATE.", EXIT_USAGE)
    encoded, program = read_program(options.job)
    return Wanted(
        folder=_folder(options, options.job.stem),
        program=program,
        encoded=encoded,
        request=None,
        weights=weights_of(options, None),
        epochs=1 if options.epochs is None else options.epochs,
        seed=options.seed or 0,
        learning_rate=_rate(options.learning_rate),
        schedule=None,
        augmentation=tuple(options.augment),
        backend=None,
        checkpoint_every_steps=50,
        checkpoints_kept=3,
        budget_bytes=budget_of(options),
    )


def _folder(options: Namespace, name: str) -> Path:
    found: Path = options.out or Path("hedgerow-train") / name
    return found


def _check_data(options: Namespace) -> None:
    """Raise what is wrong with the data as far as that is known without a program."""
    try:
        options.data.stat()
    except OSError as error:
        raise Problem(
            f"The data {options.data} cannot be read: {error.strerror}. Give --data a file or a folder."
        ) from None


def _check_augmentation(wanted: Wanted) -> None:
    try:
        parse_augmentation(wanted.augmentation, sample_shape(wanted.program))
    except BadInput as error:
        raise Problem(str(error), EXIT_USAGE) from None


def _rate(text: str) -> str:
    value = decimal(text)
    if value is None or value <= 0:
        raise Problem(f"--learning-rate {text} is no decimal above 0, such as 0.05 or 1e-3.", EXIT_USAGE)
    return text
