"""Our side of a measurement: load a program, train it, print what the stop-watch says as one line of JSON.

Run as `python -m bench_core.core PROGRAM WORKLOAD SECONDS [THREADS]`: with a number of threads on the compiled backend;
without, threads are OpenBLAS's, set by whoever starts it.
"""

import json
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench_core.timing import Settings, measure, resident_bytes
from bench_core.workloads import WORKLOADS, Workload
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.native.library import Unavailable, load
from hedgerow_agent.core.native.segments import NativeBackend
from hedgerow_plans import codec

AFTER_IMPORT_BYTES = resident_bytes()
LEARNING_RATE = 0.01
SEED = 0


def samples(workload: Workload) -> tuple[npt.NDArray[np.float32 | np.int32], npt.NDArray[np.int32]]:
    """Return one batch of random samples and labels."""
    rng = np.random.default_rng(SEED)
    shape = (workload.batch_size, *workload.shape)
    labels = rng.integers(0, workload.classes, workload.batch_size, dtype=np.int32)
    if workload.vocabulary:
        return rng.integers(0, workload.vocabulary, shape, dtype=np.int32), labels
    return rng.standard_normal(shape, dtype=np.float32), labels


def native_backend(threads: int) -> NativeBackend:
    """Return the compiled backend, which whoever starts this has found."""
    library = load()
    if isinstance(library, Unavailable):
        raise SystemExit(library.reason)
    return NativeBackend(library, threads)


def main() -> None:
    """Measure one workload in this process."""
    workload = WORKLOADS[sys.argv[2]]
    x, y = samples(workload)
    backend = native_backend(int(sys.argv[4])) if len(sys.argv) > 4 else None
    executor = Executor(codec.decode(Path(sys.argv[1]).read_bytes()), {}, SEED, backend=backend)
    settings = Settings(seconds=float(sys.argv[3]))
    sample = measure(lambda: executor.step(x, y, LEARNING_RATE).loss, settings, AFTER_IMPORT_BYTES)
    print(json.dumps(sample.as_json()))


if __name__ == "__main__":
    main()
