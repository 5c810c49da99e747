"""`python -m sampledata FOLDER`: write a base model, a dataset of each drift, and a job to try `train` with."""

import argparse
import os
import shutil
import sys
from pathlib import Path

import yaml

from provision.cache import cache_root
from sampledata.base_model import BaseModel
from sampledata.drift import DRIFTS
from sampledata.prepare import prepare

JOB = "job.yaml"


def main() -> int:
    """Prepare the data and say where it is, what the base model is worth, and what to try."""
    parser = argparse.ArgumentParser(
        prog="python -m sampledata",
        description="Write npz files of real handwritten digits (clean, rotated, inverted, fogged), a base model "
        "trained on other, clean ones, and a TrainingJob that adapts it, to try `hedgerow-agent train` with.",
    )
    parser.add_argument("folder", type=Path, help="where to write; what is there under these names is replaced")
    folder: Path = parser.parse_args().folder
    drifts = {name: name for name in DRIFTS}
    prepared = prepare(cache_root(os.environ) / "sampledata", drifts, lambda text: print(text, file=sys.stderr))
    folder.mkdir(parents=True, exist_ok=True)
    for file in (prepared.base.file, *prepared.datasets.values()):
        shutil.copyfile(file, folder / file.name)
    (folder / JOB).write_text(job_manifest(prepared.base), encoding="utf-8")
    print(f"{folder / prepared.base.file.name}: the base model, accuracy {prepared.base.accuracy:.3f} on clean images")
    print("\n".join(str(folder / file.name) for file in prepared.datasets.values()))
    print(f"Try: hedgerow-agent train {folder / JOB} --data {folder / 'inverted.npz'}")
    return 0


def job_manifest(base: BaseModel) -> str:
    """Return a TrainingJob that adapts the base model, as YAML."""
    spec = {
        "model": {
            "zoo": "cnn-small",
            "classes": 10,
            "inputShape": [1, 28, 28],
            "weights": {"uri": f"file:{base.file.name}", "sha256": base.sha256},
        },
        "dataset": "camera",
        "method": {"lora": {"rank": 4}},
        "training": {
            "epochs": 20,
            "batchSize": 32,
            "seed": 7,
            "optimizer": {"sgd": {"learningRate": "0.02", "momentum": "0.9"}},
        },
        "devices": {"selector": {}},
        "checkpoint": {"everySteps": 20, "keep": 5},
    }
    job = {"apiVersion": "hedgerow.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "digits"}, "spec": spec}
    return yaml.safe_dump(job, sort_keys=False)


if __name__ == "__main__":
    raise SystemExit(main())
