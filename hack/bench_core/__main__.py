"""Compare the core's training step with PyTorch's: `hack/bench-core [--workloads ...] [--rounds N] [--threads 1 2]`."""

import argparse
import datetime as dt
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench_core.instructions import alike, held_back
from bench_core.programs import encoded_program
from bench_core.report import as_json, figures, markdown, over_bounds, too_few
from bench_core.rounds import CONTESTANTS, NATIVE, OURS, TUNED, WITH_NATIVE, Case, Results, Round, run_rounds
from bench_core.timing import Sample
from bench_core.torch_venv import TORCH_VERSION, obtain_torch
from bench_core.workloads import WORKLOADS
from hedgerow_agent.core.native.library import Unavailable, load

HACK = Path(__file__).resolve().parents[1]
REPORTS = HACK.parent / "reports"
FEWEST_ROUNDS = 5
GLIBC_KEEPS_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20),
    "MALLOC_TRIM_THRESHOLD_": str(4 * 2**30),
    "MALLOC_TOP_PAD_": str(256 * 2**20),
}
"""What "tuned" tells glibc: never give memory back, so that torch does not fault it in anew for every tensor."""


def read_arguments(words: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="bench-core", description="Compare the core's training step with PyTorch's.")
    parser.add_argument("--workloads", nargs="+", choices=sorted(WORKLOADS), default=list(WORKLOADS), metavar="NAME")
    parser.add_argument(
        "--rounds",
        type=int,
        default=FEWEST_ROUNDS,
        help=f"rounds that count (default and least for a verdict {FEWEST_ROUNDS})",
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of threads (default 1 2)")
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds each process measures (default 3)")
    parser.add_argument("--avx2", action="store_true", help="nobody may use AVX-512, as on boards, which have none")
    parser.add_argument("--reports", type=Path, default=REPORTS, help="where the table goes")
    return parser.parse_args(words)


class Contest:
    """Starts contestants in processes of their own."""

    def __init__(self, torch_python: Path, programs: Path, arguments: argparse.Namespace) -> None:
        self._torch_python = torch_python
        self._programs = programs
        self._seconds = str(arguments.seconds)
        self._surroundings = alike(os.environ, avx2=arguments.avx2)

    def __call__(self, case: Case, contestant: str) -> Sample:
        """Run one contestant and return what it measured."""
        output = subprocess.run(
            self._command(case, contestant),
            env=self.environment(case, contestant),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
        return Sample(**json.loads(output.splitlines()[-1]))

    def _command(self, case: Case, contestant: str) -> list[str | Path]:
        name = case.workload.name
        if contestant in (OURS, NATIVE):
            threads = [str(case.threads)] if contestant == NATIVE else []
            return [sys.executable, "-m", "bench_core.core", self._programs / name, name, self._seconds, *threads]
        tuned = ["tuned"] if contestant == TUNED else []
        return [self._torch_python, "-m", "bench_core.peer", name, self._seconds, str(case.threads), *tuned]

    def environment(self, case: Case, contestant: str) -> dict[str, str]:
        """Return what a contestant's process is told about threads, instructions and memory."""
        count = 1 if contestant == NATIVE else case.threads  # which splits work above BLAS
        threads = {f"{library}_NUM_THREADS": str(count) for library in ("OPENBLAS", "OMP", "MKL")}
        memory = GLIBC_KEEPS_MEMORY if contestant == TUNED else {}
        return {**self._surroundings, "PYTHONPATH": str(HACK), **threads, **memory}


def tell(case: Case, each: Round, quiet: bool) -> None:
    """Say what a round gave, as it is over."""
    times = ", ".join(f"{name} {sample.median_ms:.2f} ms" for name, sample in each.items())
    foreign = max(sample.foreign_cores for sample in each.values())
    note = "" if quiet else " - thrown out"
    sys.stderr.write(f"{case.workload.name}, {case.threads} threads: {times} (foreign cores {foreign:.2f}){note}\n")


def measure(arguments: argparse.Namespace, torch_python: Path) -> list[Results]:
    """Plan every workload, then run the rounds."""
    chosen = [WORKLOADS[name] for name in arguments.workloads]
    cases = [Case(workload, threads) for workload in chosen for threads in arguments.threads]
    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        for workload in chosen:
            (Path(folder) / workload.name).write_bytes(encoded_program(workload))
        contest = Contest(torch_python, Path(folder), arguments)
        return run_rounds(cases, arguments.rounds, contest, tell, contestants())


def contestants() -> Sequence[str]:
    """Return who takes part: the compiled backend only where it is built."""
    library = load()
    if isinstance(library, Unavailable):
        sys.stderr.write(f"{library.reason}\n")
        return CONTESTANTS
    return WITH_NATIVE


def processor(avx2: bool) -> str:
    """Return what measures: processors of one architecture differ by more than the ratios."""
    lines = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines()
    known = dict([part.strip() for part in line.split(":", 1)] for line in lines if ":" in line)
    has_wide = "avx512f" in known.get("flags", "").split()
    wide = "without AVX-512" if avx2 or not has_wide else "with AVX-512"
    return f"{known.get('model name', platform.machine())} {wide}, processors {sorted(os.sched_getaffinity(0))}"


def write_report(folder: Path, results: list[Results], avx2: bool = False) -> str:
    """Write the table and every round beside it, and return the table."""
    now = dt.datetime.now(dt.UTC)
    where = f"{processor(avx2)}, Python {platform.python_version()}"
    title = f"Training steps beside PyTorch {TORCH_VERSION}, {now:%Y-%m-%d %H:%M} UTC"
    text = markdown(title, f"Ratios are ours / torch, medians of rounds; {where}.", results)
    folder.mkdir(parents=True, exist_ok=True)
    name = f"bench-core-{now:%Y%m%d-%H%M%S}"
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    (folder / f"{name}.json").write_text(json.dumps(as_json(results), indent=1), encoding="utf-8")
    return text


def main(words: Sequence[str]) -> int:
    """Measure and report; 1 when a bound is exceeded, 0 when none is or when there is no torch."""
    arguments = read_arguments(words)
    python = obtain_torch(os.environ)
    if isinstance(python, str):
        print(python)
        return 0
    if held_back(os.environ):
        sys.stderr.write(f"Not heeded, as it is for one library alone: {', '.join(held_back(os.environ))}.\n")
    results = measure(arguments, python)
    print(write_report(arguments.reports, results, arguments.avx2))
    print("\n".join(figures(results)))
    problems = [problem for result in results for problem in (*over_bounds(result), *too_few(result, FEWEST_ROUNDS))]
    print("\n".join(problems) or "Every ratio is within its bound.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
