"""Predictions with what the device runs now: the base model, or a delta on top of it. Imports numpy."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hedgerow_agent import inputs
from hedgerow_agent.config import AgentConfig
from hedgerow_agent.core.errors import BadInput, CoreError
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.samples import Targets
from hedgerow_agent.machine.state import Adapter
from hedgerow_agent.probes import Probe, read_probe
from hedgerow_agent.store import Store
from hedgerow_agent.trainer.backend import open_backend
from hedgerow_agent.trainer.deltas import decode_delta
from hedgerow_agent.trainer.loading import Unfit, load_program, load_weights
from hedgerow_agent.weights import UnreadableTensors


class CannotPredict(Exception):  # noqa: N818 - reads as what it says
    """There is nothing to predict with, or nothing to predict from; the text is a sentence."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The classes of some samples, and how many of them are right if that is known."""

    running: str
    classes: tuple[int, ...]
    accuracy: float | None  # None: the input has no labels


def predict(config: AgentConfig, probe: Path) -> Prediction:
    """Predict the classes of the samples in an npz file with the active adapter."""
    store = Store(config.storage.folder)
    adapter = store.active()
    if adapter is None:
        raise CannotPredict(f"No model has come to {config.device} yet: {store.folder} names no active adapter.")
    try:
        samples = read_probe(probe)
        return _answers(_open_model(config, store, adapter), adapter, samples)
    except (Unfit, UnreadableTensors, CoreError) as error:
        raise CannotPredict(str(error)) from None


def _answers(model: Executor, adapter: Adapter, probe: Probe) -> Prediction:
    if model.samples.targets is not Targets.LABELS:
        raise CannotPredict(f"The model of job {adapter.job.job_uid} has no classes to predict: it makes numbers.")
    x, y = probe.samples_for(model.samples), probe.labels_for(model.samples)
    logits = model.predict(x)
    silent = int((~np.isfinite(logits).all(axis=1)).sum())
    if silent:
        raise BadInput(
            f"The model answers {silent} of {len(x)} samples with what is no number; check how large the samples are, "
            "or roll back to an earlier model."
        )
    classes = logits.argmax(axis=1)
    accuracy = None if y is None else float(np.mean(classes == y))
    return Prediction(adapter.checkpoint or "base", tuple(int(one) for one in classes), accuracy)


def _open_model(config: AgentConfig, store: Store, adapter: Adapter) -> Executor:
    program = load_program(store.program_file(adapter.program_digest), adapter.program_digest)
    found = inputs.find_weights(config.models.folder, adapter.weights)
    if not isinstance(found, inputs.Found):
        raise CannotPredict(found.message)
    weights = load_weights(found.file, adapter.weights.sha256)
    backend = open_backend(None, os.environ).backend
    executor = Executor(program, weights, adapter.seed, len(program.rungs) - 1, config.storage.folder, backend=backend)
    if adapter.checkpoint is not None:
        content = store.checkpoints(adapter.job).read_delta(adapter.checkpoint)
        if content is None:
            raise CannotPredict(f"The active checkpoint {adapter.checkpoint} is missing or was altered; roll back.")
        executor.load_delta(decode_delta(content, adapter.checkpoint))
    return executor
