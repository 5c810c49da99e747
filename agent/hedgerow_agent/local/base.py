"""Which parameters a run starts from: the job's weights, a file that is named, or values from the seed."""

from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

from hedgerow_agent import inputs
from hedgerow_agent.files import sha256_of
from hedgerow_agent.local.problems import EXIT_USAGE, Problem
from hedgerow_agent.trainer.loading import NO_WEIGHTS_SHA256
from hedgerow_plans.protocol.messages import WeightsReference


@dataclass(frozen=True, slots=True)
class Weights:
    """The base model's file; none for a model that starts from its seed."""

    file: Path | None
    sha256: str


def weights_of(options: Namespace, reference: WeightsReference | None) -> Weights:
    """Return the weights that the command line asks for; `reference` is the job's."""
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
