"""Bare problems: true optima, bounds that hold, the published graphs, and bad files told in a sentence."""

import copy
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hedgerow_operator.cli import hedgerow
from hedgerow_operator.planning.bare import BareInfeasible, BarePlan, Request, plan_bare, read_problem
from hedgerow_plans.bare import MAX_FILE_BYTES, SCHEMA, BareProblem
from hedgerow_plans.planning.abstract.bare import bare_steps, bare_workload
from hedgerow_plans.planning.charts import chart_bare
from hedgerow_plans.planning.optimal.point import overhead, point, violated
from hedgerow_plans.planning.optimal.relaxation import Relaxation
from hedgerow_plans.planning.optimal.search import Options, search
from hedgerow_plans.planning.optimal.stages import last_purposes, peaks, stage_ends
from hedgerow_plans.planning.optimal.timeline import Timeline
from hedgerow_plans.verify_bare import WrongPlan, verify_bare
from support.repository import ROOT
from support.sampling import repetitions
from support.workloads import (
    keep_all_peak,
    random_layered_graph,
    random_training_graph,
    true_optimum,
    working_set,
)

BESIDE = [parent / "shared" / "data" / "poet" for parent in (ROOT.parent, ROOT.parent.parent)]  # or beside a worktree
POET = next((folder for folder in BESIDE if folder.is_dir()), BESIDE[0])
PROVEN = Options(tolerance=0.0)
GOOD: dict[str, Any] = {
    "schema": SCHEMA,
    "name": "good",
    "nodes": [{"name": "a", "bytes": 4, "cost": 2}, {"bytes": 4, "cost": 1, "time": 3, "page_out": 1, "page_in": 1}],
    "edges": [[0, 1]],
}


def tiny(seed: int) -> tuple[BareProblem, int]:
    source = random.Random(seed)
    while True:
        paging = source.random() < 0.4
        problem = random_training_graph(source, 7 if paging else source.randint(8, 11), paging=paging)
        low, high = working_set(problem), keep_all_peak(problem)
        if low < high:
            return problem, source.randint(low, high - 1)


def test_small_graphs_are_planned_at_their_true_optimum() -> None:
    feasible = reached = 0
    for seed in range(repetitions(60, 1000)):
        problem, budget = tiny(seed)
        best = true_optimum(problem, budget)
        work = bare_workload(problem)
        standing = search(work, budget, None, PROVEN)
        if best is None:
            assert standing.cost is None
            continue
        feasible += 1
        assert standing.bound <= best
        if standing.codes is not None:
            replayed = verify_bare(problem, bare_steps(work, standing.codes), budget_bytes=budget)
            assert replayed.cost == standing.cost
            reached += replayed.cost == best
    assert reached >= 0.995 * feasible


@pytest.mark.parametrize("seed", range(4))
def test_the_relaxation_cuts_off_no_plan(seed: int) -> None:
    source = random.Random(seed)
    problem = random_training_graph(source, 40, paging=seed % 2 == 0)
    work = bare_workload(problem)
    budget = (work.keep_all_bytes + 2 * work.floor_bytes) // 3
    standing = search(work, budget, None, Options(rounds=1, moves=30))
    assert standing.codes is not None
    for prominence in (0.1, 0.03, 0.0):
        ends = stage_ends(work, peaks(work, budget, last_purposes(work), prominence))
        relaxation = Relaxation(work, budget, None, ends)
        values = point(relaxation, standing.codes)
        assert violated(relaxation, values) == []
        assert work.base_cost + overhead(relaxation, values) <= (standing.cost or 0)


def test_more_memory_never_costs_more() -> None:
    for seed in range(repetitions(6, 60)):
        problem = random_training_graph(random.Random(seed), 24, paging=False)
        work = bare_workload(problem)
        costs: list[int] = []
        known: list[Sequence[int]] = []
        for percent in (60, 70, 80, 90, 100):
            standing = search(work, work.keep_all_bytes * percent // 100, None, Options(rounds=1, moves=20), known)
            if standing.codes is not None:
                known.append(standing.codes)
                costs.append(standing.cost or 0)
        assert costs == sorted(costs, reverse=True)


def test_the_same_seed_and_move_limit_give_the_same_plan() -> None:
    work = bare_workload(random_layered_graph(random.Random(5), 60, width=6))
    options = Options(seed=7, rounds=2, moves=40)
    first, second = (search(work, work.keep_all_bytes * 8 // 10, None, options) for _ in range(2))
    assert first.codes is not None
    assert (first.codes, first.bound) == (second.codes, second.bound)


def test_a_reproducible_request_gives_the_same_steps_twice() -> None:
    problem = random_training_graph(random.Random(5), 12, paging=True)
    request = Request(keep_all_peak(problem) * 8 // 10, reproducible=True, seed=7)
    first, second = plan_bare(problem, request), plan_bare(problem, request)
    assert isinstance(first, BarePlan)
    assert isinstance(second, BarePlan)
    assert first.steps == second.steps


@pytest.mark.parametrize("seed", range(3))
def test_edits_keep_lifetimes_as_a_fresh_trace_has_them_and_can_be_taken_back(seed: int) -> None:
    source = random.Random(seed)
    work = bare_workload(random_training_graph(source, 30, paging=True))
    line = Timeline(work, range(work.nodes))
    for _ in range(60):
        before = (list(line.codes), line.memory.tolist(), line.cost, line.time)
        mark = line.mark()
        position = source.randint(1, len(line.codes) - 1)
        node = source.randrange(max(1, line.step_at(position)))
        line.insert(position, [node if source.random() < 0.5 else ~node])
        line.prune()
        fresh = Timeline(work, line.codes)
        assert (fresh.codes, fresh.memory.tolist(), fresh.cost) == (line.codes, line.memory.tolist(), line.cost)
        if source.random() < 0.5:
            line.rollback(mark)
            assert before == (list(line.codes), line.memory.tolist(), line.cost, line.time)


def test_the_check_refuses_broken_plans() -> None:
    problem = random_training_graph(random.Random(1), 9, paging=True)
    work = bare_workload(problem)
    steps = bare_steps(work, range(work.nodes))
    verify_bare(problem, steps, budget_bytes=work.keep_all_bytes)
    with pytest.raises(WrongPlan, match="more than the budget"):
        verify_bare(problem, steps, budget_bytes=work.keep_all_bytes - 1)
    with pytest.raises(WrongPlan, match="never computed"):
        verify_bare(problem, steps[:1], budget_bytes=work.keep_all_bytes)
    with pytest.raises(WrongPlan, match="is not live"):
        verify_bare(problem, [step for step in steps if step != ("compute", 0)], budget_bytes=work.keep_all_bytes)
    with pytest.raises(WrongPlan, match="not paged out before"):
        verify_bare(problem, [("page_in", 0), *steps], budget_bytes=work.keep_all_bytes)
    with pytest.raises(WrongPlan, match="deadline"):
        verify_bare(problem, steps, budget_bytes=work.keep_all_bytes, deadline=1)


def changed(**changes: Any) -> dict[str, Any]:
    return copy.deepcopy(GOOD) | changes


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        pytest.param(changed(edges=[[1, 0]]), "the graph has a cycle", id="cycle"),
        pytest.param(changed(edges=[[0, 2]]), "there are only nodes 0 to 1", id="edge out of range"),
        pytest.param(changed(nodes=[{"bytes": -1, "cost": 1}], edges=[]), "which is negative", id="negative bytes"),
        pytest.param(changed(nodes=[{"bytes": 1, "cost": 1.5}], edges=[]), "not an integer", id="float cost"),
        pytest.param({key: GOOD[key] for key in ("nodes", "edges")}, '"schema" is missing', id="no schema"),
        pytest.param(changed(nodes=[]), "there is nothing to plan", id="no nodes"),
        pytest.param([], "is a JSON object, not a list", id="a list"),
        pytest.param(changed(nodes=[{"bytes": 1, "cost": 1, "page_in": 1}], edges=[]), "only one of", id="half a page"),
    ],
)
def test_a_bad_problem_is_a_sentence_and_exit_code_2(tmp_path: Path, document: object, sentence: str) -> None:
    file = tmp_path / "problem.json"
    file.write_text(json.dumps(document))
    result = CliRunner().invoke(hedgerow, ["plan", str(file), "--budget", "10"])
    assert result.exit_code == 2
    assert sentence in result.output


def test_a_file_over_the_limit_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    file = tmp_path / "problem.json"
    with file.open("wb") as hole:
        hole.truncate(MAX_FILE_BYTES + 1)
    result = CliRunner().invoke(hedgerow, ["plan", str(file), "--budget", "10"])
    assert result.exit_code == 2
    assert f"at most {MAX_FILE_BYTES} are read" in result.output


def test_the_command_prints_json_and_says_what_does_not_fit(tmp_path: Path) -> None:
    file = tmp_path / "problem.json"
    file.write_text(json.dumps(GOOD))
    good = CliRunner().invoke(hedgerow, ["plan", str(file), "--budget", "8", "-o", "json"])
    assert (good.exit_code, json.loads(good.output)["cost"]) == (0, 3)
    bad = CliRunner().invoke(hedgerow, ["plan", str(file), "--budget", "7", "-o", "json"])
    answer = json.loads(bad.output)
    assert (bad.exit_code, answer["feasible"], answer["floor_bytes"], answer["needed_bytes"]) == (3, False, 8, 8)


FACTS = [  # systems.md 2.1: nodes, working set, keep-all peak, joules on m0, m4, a72
    ("linear", 27, 3_256, 7_416, 0.104679, 0.000456, 0.006589),
    ("transformer", 19, 31_457_280, 37_748_736, None, 8.256776, None),
    ("vgg16_cifar", 81, 1_048_576, 2_465_832, None, None, None),
    ("resnet18_cifar", 133, 262_144, 2_453_760, None, 0.545669, 7.889510),
    ("bert", 195, 31_457_280, 383_778_816, None, None, None),
    ("resnet50", 335, 12_390_400, 127_759_104, None, None, None),
]

LISTED = [  # problem, deadline, budget, joules that must not be exceeded
    ("linear-m0", 1.253, 6_000, 0.104679),
    ("linear-m0", 1.253, 5_000, 0.104679),
    ("linear-m0", 1.253, 4_500, 0.104679),
    ("linear-m0", 1.253, 4_000, 0.104730),
    ("linear-m0", 1.253, 3_500, 0.104862),
    ("linear-m0", 1.253, 3_256, 0.104913),
    ("transformer-m4", 2.0, 34_000_000, 8.488222),
    ("transformer-m4", 2.0, 31_457_280, 8.614732),
    ("vgg16_cifar-m4", 1.5, 1_500_000, 3.440408),
    ("resnet18_cifar-a72", 7.6, 3_000_000, 7.889510),
    ("resnet18_cifar-m4", 1.5, 737_719, 0.550850),
]


@pytest.mark.skipif(not POET.is_dir(), reason="the published graphs are not beside this repository")
class TestPublishedGraphs:
    @pytest.mark.parametrize("facts", FACTS, ids=lambda facts: facts[0])
    def test_their_facts(self, facts: tuple[Any, ...]) -> None:
        name, nodes, floor, peak, *joules = facts
        for chip, expected in zip(("m0", "m4", "a72"), joules, strict=True):
            work = bare_workload(read_problem(POET / f"{name}-{chip}.json"))
            assert (work.nodes, work.floor_bytes, work.keep_all_bytes) == (nodes, floor, peak)
            assert expected is None or round(work.base_cost / 1e12, 6) == expected

    @pytest.mark.parametrize(("name", "factor", "budget", "joules"), LISTED)
    def test_listed_budgets(self, name: str, factor: float, budget: int, joules: float) -> None:
        plan = plan_bare(read_problem(POET / f"{name}.json"), Request(budget, factor))
        assert isinstance(plan, BarePlan)
        assert round(plan.cost / 1e12, 6) <= joules
        assert plan.gap <= 0.0005
        if name == "resnet18_cifar-a72":
            assert plan.gap == 0
            assert not any(kind == "page_in" for kind, _ in plan.steps)

    def test_what_was_proven_infeasible_is_infeasible(self) -> None:
        answer = plan_bare(read_problem(POET / "linear-m0.json"), Request(3_000, 1.253))
        assert isinstance(answer, BareInfeasible)
        assert (answer.floor_bytes, answer.needed_bytes) == (3_256, 3_256)


@pytest.mark.parametrize("strategy", ["keep-all", "greedy", "melon", "sage", "dtr", "poet", "optimal"])
def test_every_strategy_plans_bare_problems_and_none_beats_the_search(tmp_path: Path, strategy: str) -> None:
    problem = random_training_graph(random.Random(3), 14, paging=True)
    everything = keep_all_peak(problem)
    whole = plan_bare(problem, Request(everything, strategy=strategy))
    assert isinstance(whole, BarePlan)
    assert whole.cost == sum(problem.cost) == whole.bound
    less = everything * 85 // 100
    best, found = plan_bare(problem, Request(less)), plan_bare(problem, Request(less, strategy=strategy))
    assert isinstance(best, BarePlan)
    if strategy == "keep-all":
        assert isinstance(found, BareInfeasible)
        assert found.needed_bytes is not None
        assert found.needed_bytes <= everything
    elif isinstance(found, BarePlan):
        assert found.cost >= best.cost
        assert found.peak_bytes <= less
    else:
        assert strategy in ("melon", "sage", "dtr")  # they evict and hope; now and then nothing comes of it


def test_a_graph_too_large_for_poets_model_is_said(tmp_path: Path) -> None:
    file = tmp_path / "large.json"
    nodes = [{"bytes": 1, "cost": 1} for _ in range(50)]
    file.write_text(json.dumps({"schema": SCHEMA, "nodes": nodes, "edges": [[n, n + 1] for n in range(49)]}))
    result = CliRunner().invoke(hedgerow, ["plan", str(file), "--budget", "2", "--strategy", "poet"])
    assert result.exit_code == 2
    assert "The problem has 50 nodes; POET's model is for at most 40." in result.output
    wrong = CliRunner().invoke(hedgerow, ["plan", str(file), "--budget", "2", "--strategy", "tte"])
    assert (wrong.exit_code, "'tte' plans no bare problems" in wrong.output) == (2, True)


def test_a_bare_plan_is_drawn(tmp_path: Path) -> None:
    problem = random_training_graph(random.Random(3), 14, paging=True)
    found = plan_bare(problem, Request(keep_all_peak(problem) * 8 // 10))
    assert isinstance(found, BarePlan)
    chart = chart_bare("random", problem, found.steps, keep_all_peak(problem) * 8 // 10)
    assert max(chart.live_bytes()) == found.peak_bytes <= chart.peak_bytes
    extra = sum(kind != "free" for kind, _ in found.steps) - len(problem.bytes)
    assert len(chart.marks) == extra > 0
    for number, block in enumerate(chart.blocks):
        for other in chart.blocks[:number]:
            apart = block.end <= other.first or other.end <= block.first
            assert apart or block.offset + block.bytes <= other.offset or other.offset + other.bytes <= block.offset
