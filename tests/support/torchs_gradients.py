"""PyTorch's gradients of a workload, from a venv of its own, which `hack/bench-core` makes."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench_core.torch_venv import torch_folder, torch_python
from bench_core.workloads import Workload
from hedgerow_agent.core.kernels.call import Array
from support.repository import ROOT

PYTHON = torch_python(os.environ)
NO_TORCH = f"There is no PyTorch in {torch_folder(os.environ)} to compare with; `make bench-core` installs it."


def torchs_steps(
    workload: Workload, parameters: Sequence[list[Array]], batch: dict[str, Array], folder: Path
) -> list[dict[str, Array]]:
    """Return the loss and the gradients by position, for each list of parameters, in the bits that these have."""
    files = []
    for draw, values in enumerate(parameters):
        given: dict[str, Any] = {f"parameter{position}": value for position, value in enumerate(values)}
        given.update(batch)
        np.savez(folder / f"given{draw}.npz", **given)
        files += [f"given{draw}.npz", f"found{draw}.npz"]
    command = [str(PYTHON), "-m", "bench_core.peer_gradients", workload.network, *files]
    subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT / "hack")}, check=True)
    return [dict(np.load(folder / name)) for name in files[1::2]]
