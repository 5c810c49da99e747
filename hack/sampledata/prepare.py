"""Everything the demo's devices need on their disks: a base model, and each device's own drifted images.

Kept in a folder of the cache whose name says what decides its content, so that it is made once and made again when a
recipe changes.
"""

import hashlib
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hedgerow_plans.plan import KERNEL_TABLE
from provision.locks import step_lock
from sampledata import base_model, drift
from sampledata.base_model import BaseModel, Recipe
from sampledata.images import Images, deal, load_mnist

BASE_IMAGES = 2000
DEVICE_IMAGES = 500
DEAL_SEED = 11


@dataclass(frozen=True, slots=True)
class SampleData:
    """What was prepared: the base model, and one dataset file per device."""

    base: BaseModel
    datasets: Mapping[str, Path]


def prepare(cache: Path, drifts: Mapping[str, str], say: Callable[[str], None]) -> SampleData:
    """Prepare the base model and the images of devices, given as device name -> drift; one process at a time."""
    recipe = Recipe()
    with step_lock(cache, "sampledata"):
        folder = cache / _key(recipe, drifts)
        datasets = {device: folder / f"{device}.npz" for device in drifts}
        file = folder / "digits.safetensors"
        base = base_model.load(file)
        if base is None or not all(dataset.exists() for dataset in datasets.values()):
            base = _make(recipe, drifts, datasets, file, say)
    return SampleData(base, datasets)


def _make(
    recipe: Recipe, drifts: Mapping[str, str], datasets: Mapping[str, Path], file: Path, say: Callable[[str], None]
) -> BaseModel:
    """Write every dataset and train the base model."""
    file.parent.mkdir(parents=True, exist_ok=True)
    base_images, *hands = deal(load_mnist(), [BASE_IMAGES] + [DEVICE_IMAGES] * len(drifts), DEAL_SEED)
    for seed, ((device, name), hand) in enumerate(zip(drifts.items(), hands, strict=True)):
        _write(datasets[device], drift.apply(name, hand, seed))
    say(f"Training the base model on {BASE_IMAGES} clean images; this happens once.")
    return base_model.train(base_images, recipe, file, say)


def _key(recipe: Recipe, drifts: Mapping[str, str]) -> str:
    """Return a name for everything that decides the content: recipe, this code, and what computes."""
    # The bits of a trained model depend on numpy and on the processor it picked its kernels for.
    decides = (recipe, sorted(drifts.items()), KERNEL_TABLE, np.__version__, platform.machine())
    sources = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return hashlib.sha256(repr(decides).encode() + sources).hexdigest()[:16]


def _write(file: Path, images: Images) -> None:
    """Write a dataset as agents read it: uncompressed, so that they can map it instead of loading it."""
    unfinished = file.with_suffix(".part.npz")
    np.savez(unfinished, x=images.x, y=images.y)
    unfinished.replace(file)
