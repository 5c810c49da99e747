"""`hedgerow-agent train` run from a test: in a process of its own or in this one, and what it came to."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Done:
    """What a command came to."""

    returncode: int
    stdout: str
    stderr: str


Train = Callable[..., Done]


def command(*arguments: object, folder: Path) -> Done:
    """Run the command as a process of its own, as people do."""
    line = [sys.executable, "-m", "hedgerow_agent", "train", *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=folder)
    return Done(done.returncode, done.stdout, done.stderr)


def job(**training: Any) -> dict[str, Any]:
    """Return a manifest that a laptop trains in a moment."""
    return {
        "apiVersion": "hedgerow.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": "handwriting"},
        "spec": {
            "model": {"zoo": "mlp", "weights": {"uri": "file:base.safetensors", "sha256": "0" * 64}},
            "dataset": "camera",
            "method": {"full": {}},
            "training": {
                "epochs": 3,
                "batchSize": 16,
                "seed": 3,
                "optimizer": {"sgd": {"learningRate": "0.1", "momentum": "0.9"}},
                **training,
            },
            "devices": {"selector": {}},
            "checkpoint": {"everySteps": 20, "keep": 2},
        },
    }


def report(done: Done) -> dict[str, Any]:
    """Return what a run came to; fail if it did not come to its end."""
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def refused(done: Done, exit_code: int, words: str) -> None:
    """Fail if a command did not end with a sentence that has these words, and nothing else."""
    assert done.returncode == exit_code, done.stdout + done.stderr
    assert words in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
