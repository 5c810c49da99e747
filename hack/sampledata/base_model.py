"""The base model: trained by our own core on clean images, the same way every time on the same machine."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from hedgerow_agent.core.data import Dataset
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels.call import Array
from hedgerow_agent.core.training import Schedule, TrainingRun
from hedgerow_plans.methods.selection import Full
from hedgerow_plans.plan import Infeasible, Program
from hedgerow_plans.program import DeviceCosts, ProgramRequest, build_program
from hedgerow_plans.training.optimizers import Sgd
from sampledata.images import Images

PLENTY_BYTES = 8 << 20
ANY_COSTS = DeviceCosts(flops_per_second=1_000_000_000, picojoules_per_flop=1000)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the base model is trained; together with the images it decides every bit."""

    model: str = "cnn-small"
    epochs: int = 12
    batch_size: int = 32
    learning_rate: float = 0.05
    momentum: float = 0.9
    seed: int = 1


@dataclass(frozen=True, slots=True)
class BaseModel:
    """A weights file and what it is worth on clean images it never saw."""

    file: Path
    sha256: str
    accuracy: float


def train(images: Images, recipe: Recipe, file: Path, say: Callable[[str], None]) -> BaseModel:
    """Train the base model and write it with a manifest beside it."""
    executor = Executor(_program(images, recipe), {}, recipe.seed)
    run = TrainingRun(executor, Dataset(images.x, images.y), Schedule(recipe.epochs, recipe.learning_rate, recipe.seed))
    while not run.done:
        loss = run.run_step().loss
        if run.step % 50 == 0 or run.done:
            say(f"base model: step {run.step} of {run.total_steps}, loss {loss:.3f}")
    accuracy = run.test().accuracy or 0.0
    parameters = {name: np.ascontiguousarray(values) for name, values in executor.delta().items()}
    executor.close()
    return _write(parameters, accuracy, file)


def predict(base: BaseModel, images: Images) -> tuple[int, ...]:
    """Return the classes that the base model sees in images."""
    executor = Executor(_program(images, Recipe()), load_file(base.file), seed=0)
    try:
        return tuple(int(label) for label in executor.predict(images.x).argmax(axis=1))
    finally:
        executor.close()


def load(file: Path) -> BaseModel | None:
    """Return a base model that was trained before, or None if it is not there or not what its manifest says."""
    try:
        manifest = json.loads(_manifest(file).read_text())
        intact = hashlib.sha256(file.read_bytes()).hexdigest() == manifest["sha256"]
        return BaseModel(file, manifest["sha256"], manifest["accuracy"]) if intact else None
    except (OSError, ValueError, KeyError):
        return None


def _program(images: Images, recipe: Recipe) -> Program:
    request = ProgramRequest(
        model=recipe.model,
        method=Full(),
        optimizer=Sgd(momentum=recipe.momentum),
        batch_size=recipe.batch_size,
        device_class="workstation",
        costs=ANY_COSTS,
        budget_bytes=PLENTY_BYTES,
        input_shape=images.x.shape[1:],
    )
    program = build_program(request)
    if isinstance(program, Infeasible):
        raise RuntimeError(f"This is a bug: the base model does not fit into {PLENTY_BYTES} bytes: {program.reason}")
    return program


def _write(parameters: dict[str, Array], accuracy: float, file: Path) -> BaseModel:
    unfinished = file.with_suffix(".part")
    save_file(parameters, unfinished)
    sha256 = hashlib.sha256(unfinished.read_bytes()).hexdigest()
    unfinished.replace(file)
    _manifest(file).write_text(json.dumps({"sha256": sha256, "accuracy": accuracy}))
    return BaseModel(file, sha256, accuracy)


def _manifest(file: Path) -> Path:
    return file.with_suffix(".json")
