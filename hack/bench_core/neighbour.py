"""Two threads beside a busy neighbour: `PYTHONPATH=hack python -m bench_core.neighbour [WORKLOAD ...]`.

One processor is occupied by a loop that never rests. The step is then timed on the other one alone with one thread, and
on both with two, in turns; two threads must not take more than 1.25 times as long, which is 20 % less speed.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench_core.core import LEARNING_RATE, SEED, samples
from bench_core.programs import encoded_program
from bench_core.timing import Settings, measure
from bench_core.workloads import WORKLOADS
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.native.library import Unavailable, load
from hedgerow_agent.core.native.segments import NativeBackend
from hedgerow_plans import codec

FIVE = ("mlp", "cnn", "resnet", "mobilenet", "encoder")
ROUNDS = 3
SECONDS = 1.0
MOST = 1.25


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


def child(program: Path, name: str, threads: int) -> None:
    """Time steps in this process and print the median as JSON."""
    library = load()
    if isinstance(library, Unavailable):
        sys.exit(library.reason)
    executor = Executor(codec.decode(program.read_bytes()), {}, SEED, backend=NativeBackend(library, threads))
    x, y = samples(WORKLOADS[name])
    found = measure(lambda: executor.step(x, y, LEARNING_RATE).loss, Settings(seconds=SECONDS), 0)
    print(json.dumps(found.median_ms))


def timed(program: Path, name: str, processors: Sequence[int]) -> float:
    """Return the median step with as many threads as processors, in a process of its own."""
    command = ["taskset", "-c", ",".join(map(str, processors)), sys.executable, "-m", "bench_core.neighbour", "--child"]
    words = [*command, str(program), name, str(len(processors))]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return float(subprocess.run(words, env=environment, stdout=subprocess.PIPE, check=True).stdout)


def compare(name: str, free: int, taken: int) -> float:
    """Return how many times as long two threads take beside a neighbour as one that has a processor to itself."""
    with tempfile.TemporaryDirectory() as folder, busy(taken):
        program = Path(folder) / "program"
        program.write_bytes(encoded_program(WORKLOADS[name]))
        rounds = [(timed(program, name, (free,)), timed(program, name, (free, taken))) for _ in range(ROUNDS)]
    one, two = (float(statistics.median(column)) for column in zip(*rounds, strict=True))
    print(f"FIGURE {name} beside a busy neighbour: one thread {one:.2f} ms, two {two:.2f} ms, ratio {two / one:.2f}")
    return two / one


def main(words: Sequence[str]) -> int:
    """Compare workloads; the result is 1 if one is above the bound."""
    if words and words[0] == "--child":
        child(Path(words[1]), words[2], int(words[3]))
        return 0
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) < 2:
        sys.stderr.write("There is one processor here; a neighbour needs another one.\n")
        return 1
    return int(max(compare(name, *processors[:2]) for name in words or FIVE) > MOST)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
