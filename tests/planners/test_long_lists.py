"""Long lists of graphs: every strategy's plans verify, layouts meet what is live, wide graphs get plans at all.

`make test` runs a seeded sample of each list, `make thorough` all of it; FIGURE lines say what came out.
"""

import random
import statistics
from collections.abc import Callable, Iterator, Sequence

import pytest

from hedgerow_operator.planning.bare import BarePlan, Request, plan_bare, read_problem
from hedgerow_plans.bare import BareProblem, Step
from hedgerow_plans.planning.abstract.bare import bare_steps, bare_workload
from hedgerow_plans.planning.abstract.workload import Workload
from hedgerow_plans.planning.layout import Interval, lay_out
from hedgerow_plans.planning.optimal.search import Options, search
from hedgerow_plans.planning.strategies import dtr, melon, sage
from hedgerow_plans.verify_bare import verify_bare
from support.repository import ROOT
from support.sampling import THOROUGH, repetitions, sample
from support.workloads import random_layered_graph, random_training_graph

BESIDE = [parent / "shared" / "data" / "poet" for parent in (ROOT.parent, ROOT.parent.parent)]  # or beside a worktree
POET = next((folder for folder in BESIDE if folder.is_dir()), BESIDE[0])
LARGEST_FOR_THE_SOLVER = 40

Schedule = Callable[[Workload, int], list[int] | None]


def keep_all(work: Workload, _budget: int) -> list[int]:
    return list(range(work.nodes))


def searched(work: Workload, budget: int) -> list[int] | None:
    found = search(work, budget, None, Options(rounds=1, moves=20)).codes
    return None if found is None else list(found)


def greedy(work: Workload, budget: int) -> list[int] | None:
    found = search(work, budget, None, Options(rounds=0)).codes
    return None if found is None else list(found)


def schedules(nodes: int) -> dict[str, Schedule]:
    quick: dict[str, Schedule] = {
        "melon": melon.schedule,
        "sage": sage.schedule,
        "dtr": dtr.schedule,
        "keep-all": keep_all,
    }
    return quick | ({"greedy": greedy, "optimal": searched} if nodes <= LARGEST_FOR_THE_SOLVER else {})


def any_graph(seed: int) -> tuple[BareProblem, int]:
    """Return a random graph of either kind and a budget between its floor and what keep-all needs."""
    source = random.Random(seed)
    nodes, paging = source.choice((8, 16, 30, 40, 60, 90)), source.random() < 0.4
    if source.random() < 0.5:
        problem = random_training_graph(source, nodes, paging=paging)
    else:
        problem = random_layered_graph(source, nodes, width=source.randint(2, 8), paging=paging)
    work = bare_workload(problem)
    return problem, source.randint(work.floor_bytes, work.keep_all_bytes)


def lifetimes(problem: BareProblem, steps: Sequence[Step]) -> Iterator[Interval]:
    born: dict[int, int] = {}
    for moment, (kind, tensor) in enumerate(steps):
        if kind in {"compute", "page_in"}:
            born[tensor] = moment
        elif kind == "free":
            yield Interval(problem.bytes[tensor], born.pop(tensor), moment)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(repetitions(1, 10)))
def test_no_strategy_emits_a_plan_that_is_rejected_and_layouts_meet_what_is_live(part: int) -> None:
    plans = met = 0
    for seed in range(1000 * part, 1000 * part + repetitions(40, 1000)):
        problem, budget = any_graph(seed)
        work = bare_workload(problem)
        for name, schedule in schedules(work.nodes).items():
            codes = schedule(work, budget)
            if codes is None:
                continue
            steps = bare_steps(work, codes)
            verify_bare(problem, steps, budget_bytes=work.keep_all_bytes if name == "keep-all" else budget)
            layout = lay_out(list(lifetimes(problem, steps)))
            plans, met = plans + 1, met + (layout.top == layout.bound)
    print(f"FIGURE random graphs, part {part}: {plans} plans, {100 * met / plans:.2f} % of layouts at max-live")
    assert met >= 0.95 * plans


def layered(seed: int) -> BareProblem:
    source = random.Random(seed)
    return random_layered_graph(source, source.randint(100, 1000 if THOROUGH else 150), width=source.randint(4, 16))


@pytest.mark.timeout(repetitions(600, 3 * 3600))
def test_wide_graphs_get_verified_plans_close_to_their_bound() -> None:
    gaps: list[float] = []
    asked = 0
    for seed in range(repetitions(2, 50)):
        problem = layered(seed)
        work = bare_workload(problem)
        for percent in (90, 80):
            budget = work.keep_all_bytes * percent // 100
            if 5 * budget < 6 * work.floor_bytes:
                continue
            asked += 1
            found = plan_bare(problem, Request(budget, time_limit_seconds=repetitions(4, 30), tolerance=0.001))
            gaps += [found.gap] if isinstance(found, BarePlan) else []
            if isinstance(found, BarePlan) and THOROUGH:
                print(f"{seed} at {percent} %: {work.nodes} nodes, gap {100 * found.gap:.3f} %, {found.seconds:.1f} s")
    median = statistics.median(gaps)
    print(f"FIGURE wide graphs: plans for {len(gaps)} of {asked}, median gap {100 * median:.3f} %")
    assert len(gaps) >= 0.98 * asked
    if THOROUGH:
        assert median <= 0.002


@pytest.mark.thorough
def test_graphs_of_5000_nodes_get_a_verified_plan() -> None:
    for seed in range(4):
        source = random.Random(seed)
        problem = (
            random_training_graph(source, 5000, paging=False)
            if seed % 2
            else random_layered_graph(source, 5000, width=source.randint(4, 16))
        )
        budget = bare_workload(problem).keep_all_bytes * 9 // 10
        found = plan_bare(problem, Request(budget, time_limit_seconds=45))
        assert isinstance(found, BarePlan)
        print(f"FIGURE 5000 nodes, seed {seed}: {found.seconds:.1f} s, gap {100 * found.gap:.2f} %")


CHIPS = [
    (net, chip, percent) for net in ("resnet50", "bert") for chip in ("m0", "m4", "a72") for percent in (75, 50, 35)
]


@pytest.mark.skipif(not POET.is_dir(), reason="the published graphs are not beside this repository")
@pytest.mark.parametrize(("net", "chip", "percent"), sample(CHIPS, 1))
def test_large_published_graphs_get_verified_plans(net: str, chip: str, percent: int) -> None:
    problem = read_problem(POET / f"{net}-{chip}.json")
    budget = bare_workload(problem).keep_all_bytes * percent // 100
    found = plan_bare(problem, Request(budget, 1.5, time_limit_seconds=repetitions(8, 28), tolerance=0.001))
    assert isinstance(found, BarePlan)
    print(f"FIGURE {net}-{chip} at {percent} %: gap {100 * found.gap:.4f} % in {found.seconds:.1f} s")
