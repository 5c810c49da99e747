"""Predictions with what the device runs now: the base model, or a delta on top of it. Imports numpy."""

import os
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hedgerow_agent import inputs
from hedgerow_agent.config import AgentConfig
from hedgerow_agent.core.errors import CoreError
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.samples import Targets
from hedgerow_agent.machine.state import Adapter
from hedgerow_agent.store import Store
from hedgerow_agent.trainer.backend import open_backend
from hedgerow_agent.trainer.deltas import decode_delta
from hedgerow_agent.trainer.loading import Unfit, load_program, load_weights


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
    x, y = _read_probe(probe)
    try:
        model = _open_model(config, store, adapter)
        if model.samples.targets is not Targets.LABELS:
            raise CannotPredict(f"The model of {adapter.job} has no classes to predict: it makes numbers.")
        logits = model.predict(np.ascontiguousarray(x, dtype=model.samples.dtype))
    except (Unfit, CoreError) as error:
        raise CannotPredict(str(error)) from None
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


def _read_probe(file: Path) -> tuple[Array, npt.NDArray[np.integer] | None]:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            x = arrays["x"]
            y = arrays.get("y")
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise CannotPredict(f"The input {file} cannot be used: {error}. It needs an array x, and may have y.") from None
    if y is not None and y.shape != (len(x),):
        raise CannotPredict(f"The input {file} has {len(x)} samples and labels of shape {list(y.shape)}.")
    return x, y
