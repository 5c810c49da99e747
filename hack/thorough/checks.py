"""The table of checks: what each shows, and the command that shows it."""

from dataclasses import dataclass

PYTEST = ("{python}", "-m", "pytest", "-q", "-rs", "-s")


@dataclass(frozen=True, slots=True)
class Check:
    """One promise and the command that keeps it; `{python}` stands for the environment's interpreter."""

    name: str
    shows: str
    command: tuple[str, ...]
    timeout_seconds: int = 3600


CHECKS: tuple[Check, ...] = (
    Check("static", "ruff, mypy strict, import rules and generated CRDs are clean", ("make", "check")),
    Check(
        "foundation-servers",
        "real servers start, serve and stop; two runs at once do not meet; nothing survives an interruption",
        (*PYTEST, "tests/servers", "tests/cluster/test_control_plane.py"),
    ),
    Check(
        "foundation-packaging",
        "an agent installation is under 150 MB and has no cluster library; programs explain a missing extra; wheels "
        "bring the compiled backend, whose kernels pass their tests on emulated processors and under sanitizers",
        (*PYTEST, "tests/packaging"),
    ),
    Check(
        "foundation-bad-states",
        "wrong Python, no network, no sudo, broken cache, port taken, disk full: a sentence each",
        (*PYTEST, "tests/provision"),
    ),
    Check("slice-demo", "the story of the demo is true, in full, on this machine", ("make", "demo")),
    Check(
        "slice-outside",
        "from kubectl apply to a rolled-back device, seen only through kubectl, MQTT and Prometheus, all six devices, "
        "with either backend",
        (*PYTEST, "tests/e2e/test_slice.py"),
    ),
    Check(
        "slice-kills",
        "kill -9 of agent, trainer, operator and broker (store deleted) at ten seeds' moments: same bits, nothing lost",
        (*PYTEST, "tests/e2e/test_kills.py"),
    ),
    Check(
        "slice-rungs",
        "every rung gives the same parameters, and the measured peak is the promised one",
        (*PYTEST, "tests/training", "--ignore=tests/training/test_zoo_rungs.py"),
        timeout_seconds=2 * 3600,
    ),
    Check(
        "core-zoo",
        "every network by every method, tuned or not: keep-all's bits on every rung, in exactly the promised bytes",
        (*PYTEST, "tests/training/test_zoo_rungs.py"),
        timeout_seconds=6 * 3600,
    ),
    Check(
        "slice-device",
        "the agent alone on a real broker: refusals, rungs, rollback, interruptions, memory limits, idle memory",
        (*PYTEST, "tests/device"),
    ),
    Check(
        "slice-cluster",
        "CRDs, operator and chart on a real API server; bad manifests are refused or explained with golden text",
        (*PYTEST, "tests/cluster", "tests/resources", "tests/chart", "tests/decisions"),
    ),
    Check(
        "graphs-published",
        "memory figures that TinyTL and TTE print come out of our own graphs by their rules",
        (*PYTEST, "tests/accounting"),
    ),
    Check(
        "graphs-speed",
        "BERT-base is built and differentiated in under 2 s, ResNet-50 in under 1 s",
        ("make", "bench"),
    ),
    Check(
        "planners-optima",
        "1,000 graphs of up to 11 nodes against exhaustive search: no bound above the optimum, 99.5 % reached; more "
        "memory never costs more; POET's graphs, facts and listed budgets; bad problems are sentences",
        (*PYTEST, "tests/planners/test_bare_problems.py", "tests/accounting/test_poet.py"),
    ),
    Check(
        "planners-zoo",
        "every network at 90, 75, 50 and 35 % of keep-all: verified, gaps within their bounds, no strategy cheaper",
        (*PYTEST, "tests/planners/test_zoo_budgets.py"),
        timeout_seconds=3 * 3600,
    ),
    Check(
        "planners-lists",
        "10,000 random graphs with no plan rejected, 50 wide ones, four of 5,000 nodes, ResNet-50 and BERT on 3 chips",
        (*PYTEST, "tests/planners/test_long_lists.py"),
        timeout_seconds=3 * 3600,
    ),
    Check(
        "planners-strategies",
        "layouts, ladders and strategies on many more examples; the same seed gives the same plan; sparse updates",
        (*PYTEST, "tests/planning"),
    ),
    Check(
        "core-speed",
        "a training step takes no larger share of PyTorch's time and memory than was promised",
        ("make", "bench-core"),
    ),
    Check("everything", "the whole suite with every long list in full", (*PYTEST, "tests"), timeout_seconds=6 * 3600),
)
