"""Melon, SAGE, DTR, TTE and POET: each keeps its own promise, and none needs more than it says."""

import subprocess
import sys
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow_plans.plan import Infeasible, Plan
from hedgerow_plans.planning.abstract.workload import Workload
from hedgerow_plans.planning.body import body_of
from hedgerow_plans.planning.strategies import STRATEGIES, Limits, dtr, keep_all, melon, poet, sage, tte
from support.networks import PLENTY, UNHURRIED, Case, cases, violations

EVICTING = (melon, sage, dtr)


def random_work(seed: int, most_nodes: int = 12, *, paging: bool = False) -> Workload:
    """Return nodes with one output each that read one to three earlier ones."""
    chance = Random(seed)
    count = chance.randint(3, most_nodes)
    reads = [tuple(sorted(chance.sample(range(node), min(node, chance.randint(1, 3))))) for node in range(count)]
    pages = tuple((chance.randint(1, 20), chance.randint(1, 20)) if paging else None for _ in range(count))
    return Workload(
        sizes=tuple(64 * chance.randint(1, 9) for _ in range(count)),
        pages=pages,
        reads=tuple(reads),
        makes=tuple((node,) for node in range(count)),
        costs=tuple(chance.randint(1, 50) for _ in range(count)),
        times=(1,) * count,
        scratch=tuple(64 * chance.randint(0, 2) for _ in range(count)),
        fences=(count,) * count,
    )


def replayed_peak(work: Workload, codes: list[int]) -> int:
    """Run operation codes on paper: everything read is there, and what nobody reads before it returns is gone."""
    last: list[set[int]] = [set() for _ in codes]
    wanted: set[int] = set()
    for position in range(len(codes) - 1, -1, -1):
        code = codes[position]
        wanted -= set(work.makes[code] if code >= 0 else (~code,))
        wanted |= set(work.reads[code]) if code >= 0 else set()
        last[position] = set(wanted)  # what must be there when this operation begins
    peak = 0
    seen: set[int] = set()
    for position, code in enumerate(codes):
        assert last[position] <= seen, f"operation {position} reads what was never made"
        born = set(work.makes[code] if code >= 0 else (~code,))
        after = last[position + 1] if position + 1 < len(codes) else set()
        used = last[position] | born | after
        peak = max(peak, sum(work.sizes[tensor] for tensor in used) + (work.scratch[code] if code >= 0 else 0))
        seen |= born
    assert set(range(work.nodes)) <= {code for code in codes if code >= 0}
    return peak


def cost(work: Workload, codes: list[int]) -> int:
    fetched = [~code for code in codes if code < 0]
    paid = sum(work.costs[code] for code in codes if code >= 0)
    pages = [work.pages[tensor] or (0, 0) for tensor in fetched]
    written = [work.pages[tensor] or (0, 0) for tensor in set(fetched)]
    return paid + sum(page[1] for page in pages) + sum(page[0] for page in written)


@settings(deadline=None)
@given(st.integers(0, 100_000), st.integers(0, 100))
def test_eviction_stays_within_its_capacity(seed: int, percent: int) -> None:
    work = random_work(seed, 40)
    capacity = work.floor_bytes + (work.keep_all_bytes - work.floor_bytes) * percent // 100
    for strategy in EVICTING:
        codes = strategy.schedule(work, capacity)
        if codes is not None:
            assert replayed_peak(work, codes) <= capacity
        assert strategy.schedule(work, work.keep_all_bytes) == list(range(work.nodes))
        assert strategy.schedule(work, work.floor_bytes - 1) is None


@UNHURRIED
@given(cases())
def test_more_memory_never_costs_more(case: Case) -> None:
    problem = case.problem(case.graphs.direct, case.batch_size, 1)
    for strategy in STRATEGIES.values():
        refusal = strategy(problem, Limits(0))
        whole = strategy(problem, Limits(PLENTY))
        assert isinstance(refusal, Infeasible)
        assert isinstance(whole, Plan)
        low, high = refusal.needed_bytes, whole.promise.peak_bytes
        plans = [strategy(problem, Limits(low + (high - low) * step // 4)) for step in range(5)]
        energy = [plan.promise.step_picojoules for plan in plans if isinstance(plan, Plan)]
        assert len(energy) == 5
        assert all(less >= more for less, more in pairwise(energy))


@UNHURRIED
@given(cases())
def test_reordering_computes_nothing_twice_and_needs_no_more_than_keep_all(case: Case) -> None:
    for problem in case.problems():
        kept, reordered = keep_all.plan(problem, Limits(PLENTY)), tte.plan(problem, Limits(PLENTY))
        assert isinstance(kept, Plan)
        assert isinstance(reordered, Plan)
        assert reordered.promise.step_flops == kept.promise.step_flops
        assert reordered.bounds.max_live_bytes <= kept.bounds.max_live_bytes


@UNHURRIED
@given(cases(batch_sizes=(4, 6)))
def test_the_mix_is_the_cheapest_micro_batch_that_fits(case: Case) -> None:
    problems = [problem for problem in case.problems() if problem.graph.name != "evaluate"]
    least = sage.plan_mix(problems, Limits(0))
    assert isinstance(least, Infeasible)
    mix = sage.plan_mix(problems, Limits(least.needed_bytes))
    assert isinstance(mix, Plan)
    assert mix.promise.peak_bytes <= least.needed_bytes
    singles = [sage.plan(problem, Limits(least.needed_bytes)) for problem in problems]
    assert mix.promise.step_picojoules == min(
        plan.promise.step_picojoules for plan in singles if isinstance(plan, Plan)
    )


@pytest.mark.parametrize("seed", range(12))
def test_poet_is_proven_best_of_its_model_and_never_dearer_than_eviction(seed: int) -> None:
    work = random_work(seed, 9, paging=seed % 2 == 0)
    capacity = (work.floor_bytes + work.keep_all_bytes) // 2
    solved = poet.schedule(work, capacity)
    if solved is None:
        assert all(strategy.schedule(work, capacity) is None for strategy in EVICTING)
        return
    assert solved.is_optimal
    assert replayed_peak(work, solved.codes) <= capacity
    for strategy in EVICTING:
        codes = strategy.schedule(work, capacity)
        assert codes is None or cost(work, solved.codes) <= cost(work, codes)


@settings(max_examples=5, deadline=None)
@given(cases(batch_sizes=(2,)))
def test_plans_of_poet_verify(case: Case) -> None:
    problem = case.problem(case.graphs.direct, case.batch_size, 1)
    if body_of(problem).work.nodes > 14:
        return
    whole = keep_all.plan(problem, Limits(PLENTY))
    assert isinstance(whole, Plan)
    plan = poet.plan(problem, Limits(whole.promise.peak_bytes - 64))
    if isinstance(plan, Plan):
        assert violations(problem, plan, whole.promise.peak_bytes - 64) == ()


def test_poet_refuses_what_its_model_is_too_large_for() -> None:
    work = random_work(0, 12)
    row = range(poet.MOST_NODES + 1)
    ones = (1,) * len(row)
    many = Workload(
        sizes=ones,
        pages=(None,) * len(row),
        reads=((),) * len(row),
        makes=tuple((node,) for node in row),
        costs=ones,
        times=ones,
        scratch=ones,
        fences=(len(row),) * len(row),
    )
    assert poet.schedule(work, work.keep_all_bytes) is not None
    with pytest.raises(ValueError, match="at most 40 nodes; this graph has 41"):
        poet.schedule(many, 10_000)


def test_online_eviction_needs_neither_numpy_nor_a_solver() -> None:
    program = (
        "import sys; sys.modules['numpy'] = None; sys.modules['highspy'] = None\n"
        "from hedgerow_plans.planning.strategies import dtr; print(dtr.NAME)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "dtr\n"), done.stderr
