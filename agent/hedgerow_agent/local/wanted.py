"""What somebody wants trained: the job of a manifest, or a program with the settings that it does not hold."""

import hashlib
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

from hedgerow_agent import inputs
from hedgerow_agent.files import sha256_of
from hedgerow_agent.local.manifests import (
    Manifests,
    catalogue_class,
    is_program,
    read_class,
    read_manifests,
    read_program,
)
from hedgerow_agent.local.planning import THIS_MACHINE, board, plan
from hedgerow_agent.local.problems import EXIT_USAGE, Problem
from hedgerow_agent.trainer.loading import NO_WEIGHTS_SHA256
from hedgerow_plans import asked
from hedgerow_plans.protocol.messages import BackendName, RateSchedule, WeightsReference
from hedgerow_plans.resources.common import decimal
from hedgerow_plans.resources.device_class import DeviceClass
from hedgerow_plans.resources.quantities import parse_quantity


@dataclass(frozen=True, slots=True)
class Weights:
    """The base model's file; none for a model that starts from its seed."""

    file: Path | None
    sha256: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """One run, settled."""

    name: str
    program: bytes
    knows_energy: bool
    weights: Weights
    epochs: int
    seed: int
    learning_rate: str
    schedule: RateSchedule | None
    backend: BackendName | None
    checkpoint_every_steps: int
    checkpoints_kept: int
    budget_bytes: int | None  # None: the program's first rung


def settle(options: Namespace) -> Wanted:
    """Read what the command line names, planning if there is no program."""
    if is_program(options.job):
        return _from_program(options)
    return _from_job(options, read_manifests(options.job))


def _from_job(options: Namespace, manifests: Manifests) -> Wanted:
    spec = manifests.job.spec
    if options.program is None:
        target = board(_class(options) or manifests.device_class, options.budget)
        program, knows_energy = plan(spec, target), target.knows_energy
        budget: int | None = target.spec.allowance_bytes
    else:
        program, knows_energy, budget = read_program(options.program), True, _budget(options)
    training = spec.training
    return Wanted(
        name=manifests.job.metadata.name,
        program=program,
        knows_energy=knows_energy,
        weights=_weights(options, WeightsReference(uri=spec.model.weights.uri, sha256=spec.model.weights.sha256)),
        epochs=training.epochs if options.epochs is None else options.epochs,
        seed=training.seed if options.seed is None else options.seed,
        learning_rate=_rate(options.learning_rate or training.optimizer.learning_rate),
        schedule=asked.schedule(training),
        backend=asked.backend(training),
        checkpoint_every_steps=spec.checkpoint.every_steps,
        checkpoints_kept=spec.checkpoint.keep,
        budget_bytes=budget,
    )


def _from_program(options: Namespace) -> Wanted:
    if options.learning_rate is None:
        raise Problem("A program says nothing about the learning rate; add --learning-rate RATE.", EXIT_USAGE)
    if options.program is not None or options.device_class or options.class_file:
        raise Problem(f"{options.job} is a program already; leave --program, --class and --class-file out.", EXIT_USAGE)
    program = read_program(options.job)
    return Wanted(
        name=options.job.stem,
        program=program,
        knows_energy=f'"deviceClass":"{THIS_MACHINE}"'.encode() not in program,
        weights=_weights(options, None),
        epochs=1 if options.epochs is None else options.epochs,
        seed=options.seed or 0,
        learning_rate=_rate(options.learning_rate),
        schedule=None,
        backend=None,
        checkpoint_every_steps=50,
        checkpoints_kept=3,
        budget_bytes=_budget(options),
    )


def _class(options: Namespace) -> DeviceClass | None:
    if options.class_file is not None:
        return read_class(options.class_file)
    return catalogue_class(options.device_class) if options.device_class else None


def _budget(options: Namespace) -> int | None:
    try:
        return parse_quantity(options.budget) if options.budget else None
    except ValueError as error:
        raise Problem(f"--budget {options.budget}: {error}") from None


def _rate(text: str) -> str:
    value = decimal(text)
    if value is None or value <= 0:
        raise Problem(f"--learning-rate {text} is no decimal above 0, such as 0.05 or 1e-3.", EXIT_USAGE)
    return text


def _weights(options: Namespace, reference: WeightsReference | None) -> Weights:
    if options.from_scratch:
        return Weights(None, NO_WEIGHTS_SHA256)
    if options.weights is not None:
        return _given(options.weights)
    if reference is None:
        raise Problem("A program names no weights; add --weights FILE, or --from-scratch.", EXIT_USAGE)
    folder = options.models or options.job.resolve().parent
    found = inputs.find_weights(folder, reference)
    if isinstance(found, inputs.Found):
        return Weights(found.file, reference.sha256)
    raise Problem(f"{found.message} Or name the folder with --models, the file with --weights, or add --from-scratch.")


def _given(file: Path) -> Weights:
    digest = sha256_of(file)
    if digest is None:
        raise Problem(f"The weights {file} cannot be read; give a safetensors file.")
    return Weights(file, digest)


def identity(wanted: Wanted, data: Path, augment: tuple[str, ...]) -> str:
    """Return a name for everything that decides the outcome, so that nothing else is gone on with."""
    facts = (
        hashlib.sha256(wanted.program).hexdigest(),
        wanted.weights.sha256,
        wanted.seed,
        wanted.epochs,
        wanted.learning_rate,
        wanted.schedule,
        str(data.resolve()),
        augment,
    )
    return hashlib.sha256(repr(facts).encode()).hexdigest()
