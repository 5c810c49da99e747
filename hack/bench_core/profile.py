"""Where a step of the numpy core spends its time: `PYTHONPATH=hack python -m bench_core.profile [WORKLOAD ...]`.

Every call is timed, on one thread and on two, in processes of their own. Two threads are BLAS's: they shorten products
of matrices alone, so what the rest takes is a floor that no number of threads lowers.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np

from bench_core.core import LEARNING_RATE, SEED, samples
from bench_core.instructions import alike
from bench_core.programs import encoded_program
from bench_core.workloads import WORKLOADS
from hedgerow_agent.core.blas import find_blas
from hedgerow_agent.core.compilation import NumpyBackend
from hedgerow_agent.core.executor import Executor
from hedgerow_agent.core.kernels import sinks
from hedgerow_agent.core.kernels.call import Array, Bound, Call
from hedgerow_plans import codec

SECONDS = 3.0
WARM_UP_STEPS = 5
THREADS = (1, 2)
PRODUCTS = "(of these, products of matrices)"
ALL = "(all)"
LEAST_SHARE = 0.01
"""Of a step; operators that take less are left out of the table."""

Milliseconds = dict[str, float]


class Stopwatch:
    """Binds calls to numpy's kernels, and adds up how long those of each operator take."""

    name = "numpy"

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._numpy = NumpyBackend()

    def bind(self, steps: Sequence[Call | Bound], arena: Array) -> tuple[Bound, ...]:
        """Return one timed call for each step."""
        names = [step.node.op if isinstance(step, Call) else "(paging)" for step in steps]
        return tuple(self.timed(name, self._numpy.bind([step], arena)) for name, step in zip(names, steps, strict=True))

    def timed(self, name: str, calls: Sequence[Callable[..., object]]) -> Callable[..., object]:
        """Return what makes some calls, with the same arguments, and counts their time."""

        def run(*words: object, **named: object) -> object:
            begun, result = time.perf_counter(), None
            for call in calls:
                result = call(*words, **named)
            self.seconds[name] += time.perf_counter() - begun
            return result

        return run

    @contextmanager
    def watching_products(self) -> Iterator[None]:
        """Count products while this lasts, those too that are bound meanwhile to go straight into a weight.

        Where numpy's BLAS is not known, numpy makes those as well.
        """
        matmul, taking = self.timed(PRODUCTS, [np.matmul]), sinks.taking
        timed = taking if find_blas() is None else lambda *given: self.timed(PRODUCTS, [taking(*given)])
        with mock.patch.object(sinks, "taking", timed), mock.patch.object(np, "matmul", matmul):
            yield


def profile(program: bytes, name: str, seconds: float) -> Milliseconds:
    """Return the milliseconds of a step by operator, as means, in this process."""
    watch, (x, y) = Stopwatch(), samples(WORKLOADS[name])
    with watch.watching_products():
        executor = Executor(codec.decode(program), {}, SEED, backend=watch)
        for _ in range(WARM_UP_STEPS):
            executor.step(x, y, LEARNING_RATE)
        watch.seconds.clear()
        begun, steps = time.perf_counter(), 0
        while steps == 0 or time.perf_counter() - begun < seconds:
            executor.step(x, y, LEARNING_RATE)
            steps += 1
        watch.seconds[ALL] = time.perf_counter() - begun
    executor.close()
    return {operator: 1000 * taken / steps for operator, taken in watch.seconds.items()}


def in_process(program: Path, name: str, threads: int) -> Milliseconds:
    """Return the same of a process with so many threads."""
    command = [sys.executable, "-m", "bench_core.profile", "--child", str(program), name]
    environment = {**alike(os.environ), "OPENBLAS_NUM_THREADS": str(threads)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return dict(json.loads(done.stdout))


def table(name: str, found: Mapping[int, Milliseconds]) -> Iterator[str]:
    """Yield lines that show operators by the time they take with one thread, and what two threads leave of it."""
    one, two = (found[threads] for threads in THREADS)
    yield f"{name:34}{'1 thread':>12}{'2 threads':>12}"
    for operator in sorted(one, key=one.__getitem__, reverse=True):
        if one[operator] >= LEAST_SHARE * one[ALL]:
            yield f"{operator:34}{one[operator]:9.2f} ms{two.get(operator, 0.0):9.2f} ms"
    rest = [milliseconds[ALL] - milliseconds[PRODUCTS] for milliseconds in (one, two)]
    yield f"{'(all but products)':34}{rest[0]:9.2f} ms{rest[1]:9.2f} ms"


def main(words: Sequence[str]) -> None:
    """Print a table for each workload."""
    if words and words[0] == "--child":
        print(json.dumps(profile(Path(words[1]).read_bytes(), words[2], SECONDS)))
        return
    for name in words or WORKLOADS:
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "program"
            program.write_bytes(encoded_program(WORKLOADS[name]))
            print(*table(name, {threads: in_process(program, name, threads) for threads in THREADS}), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
