"""Training beside a busy neighbour: `PYTHONPATH=hack python -m bench_core.neighbour [WORKLOAD ...]`.

One processor is occupied by a loop that never rests. The step is then timed with one thread on the other one alone, and
in turns with both processors at hand: the compiled backend on two threads, numpy on one, as trainers use it. Neither
may take more than 1.25 times as long, which is 20 % less speed. What numpy takes on two of BLAS's threads is shown
beside it: who sets `OPENBLAS_NUM_THREADS` should know it.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench_core.core import LEARNING_RATE, SEED, native_backend, samples
from bench_core.instructions import alike
from bench_core.programs import encoded_program
from bench_core.timing import Settings, measure
from bench_core.workloads import WORKLOADS
from hedgerow_agent.core.compilation import NumpyBackend
from hedgerow_agent.core.executor import Executor
from hedgerow_plans import codec

FIVE = ("mlp", "cnn", "resnet", "mobilenet", "encoder")
ROUNDS = 3
SECONDS = 1.0
MOST = 1.25


@dataclass(frozen=True, slots=True)
class Way:
    """A way to compute: what is timed beside the neighbour against one thread with a processor to itself."""

    backend: str
    threads: int
    bounded: bool


WAYS = (Way("native", 2, bounded=True), Way("numpy", 1, bounded=True), Way("numpy", 2, bounded=False))


@contextmanager
def busy(processor: int) -> Iterator[None]:
    """Occupy a processor for as long as this lasts."""
    loop = f"import os\nos.sched_setaffinity(0, {{{processor}}})\nwhile True: pass"
    neighbour = subprocess.Popen([sys.executable, "-c", loop])
    try:
        yield
    finally:
        neighbour.kill()
        neighbour.wait()


def child(program: Path, name: str, backend: str, threads: int) -> None:
    """Time steps in this process and print the median as JSON; numpy's threads are set by whoever starts it."""
    chosen = native_backend(threads) if backend == "native" else NumpyBackend()
    executor = Executor(codec.decode(program.read_bytes()), {}, SEED, backend=chosen)
    x, y = samples(WORKLOADS[name])
    found = measure(lambda: executor.step(x, y, LEARNING_RATE).loss, Settings(seconds=SECONDS), 0)
    print(json.dumps(found.median_ms))


def timed(program: Path, name: str, way: Way, threads: int, processors: Sequence[int]) -> float:
    """Return the median step in a process of its own."""
    command = ["taskset", "-c", ",".join(map(str, processors)), sys.executable, "-m", "bench_core.neighbour", "--child"]
    words = [*command, str(program), name, way.backend, str(threads)]
    of_blas = threads if way.backend == "numpy" else 1
    environment = {**alike(os.environ), "OPENBLAS_NUM_THREADS": str(of_blas)}
    return float(subprocess.run(words, env=environment, stdout=subprocess.PIPE, check=True).stdout)


def compare(name: str, way: Way, free: int, taken: int) -> float:
    """Return how many times as long a step takes beside a neighbour as with a processor to itself."""
    with tempfile.TemporaryDirectory() as folder, busy(taken):
        program = Path(folder) / "program"
        program.write_bytes(encoded_program(WORKLOADS[name]))
        rounds = [
            (timed(program, name, way, 1, (free,)), timed(program, name, way, way.threads, (free, taken)))
            for _ in range(ROUNDS)
        ]
    alone, beside = (float(statistics.median(column)) for column in zip(*rounds, strict=True))
    print(
        f"FIGURE {name} in {way.backend} on {way.threads} threads beside a busy neighbour: {beside:.2f} ms, on one "
        f"with a processor to itself {alone:.2f} ms, ratio {beside / alone:.2f}{f' (bound {MOST})' * way.bounded}"
    )
    return beside / alone


def main(words: Sequence[str]) -> int:
    """Compare workloads; the result is 1 if one is above the bound."""
    if words and words[0] == "--child":
        program, name, backend, threads = words[1:]
        child(Path(program), name, backend, int(threads))
        return 0
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) < 2:
        sys.stderr.write("There is one processor here; a neighbour needs another one.\n")
        return 1
    ratios = {(name, way): compare(name, way, *processors[:2]) for name in words or FIVE for way in WAYS}
    return int(any(ratio > MOST for (_, way), ratio in ratios.items() if way.bounded))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
