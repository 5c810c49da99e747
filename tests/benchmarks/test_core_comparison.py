"""How the comparison with PyTorch counts: which rounds are kept, what the ratios are, and what the table says."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench_core import torch_venv
from bench_core.__main__ import Contest, processor, read_arguments
from bench_core.instructions import AVX2_AT_MOST, held_back
from bench_core.profile import ALL, PRODUCTS, profile, table
from bench_core.programs import encoded_program
from bench_core.report import as_json, figures, markdown, over_bounds, too_few
from bench_core.rounds import CONTESTANTS, NATIVE, OURS, TORCH, TUNED, Case, Results, run_rounds
from bench_core.timing import Sample, Settings, measure, resident_bytes
from bench_core.workloads import WORKLOADS
from hedgerow_plans.models import zoo

MLP = Case(WORKLOADS["mlp"], 1)


def sample(median_ms: float, foreign_cores: float = 0.0, peak_bytes: int = 10) -> Sample:
    return Sample(median_ms, median_ms, 7, foreign_cores, peak_bytes, 0.5)


def results_of(*ratios: float, memory: int = 1) -> Results:
    rounds = [{OURS: sample(ratio, peak_bytes=memory), TORCH: sample(1.0), TUNED: sample(0.5)} for ratio in ratios]
    return Results(MLP, rounds)


def quiet(*_about: object) -> None:
    """Say nothing of a round."""


def test_a_round_beside_a_busy_neighbour_is_thrown_out_whole_and_run_again() -> None:
    foreign: Iterator[float] = iter([0.0, 0.5, 0.0, *(0.1 for _ in range(6))])
    (results,) = run_rounds([MLP], 2, lambda _case, _who: sample(1.0, next(foreign)), quiet)
    assert len(results.rounds) == 2
    assert results.thrown_out == 1
    assert all(each.foreign_cores == 0.1 for one in results.rounds for each in one.values())


def test_a_machine_that_is_never_quiet_ends_the_rounds() -> None:
    (results,) = run_rounds([MLP], 3, lambda _case, _who: sample(1.0, 0.9), quiet)
    assert results.rounds == []
    assert results.thrown_out == 12
    assert "0, 12 thrown out" in markdown("t", "s", [results])


def test_every_case_has_its_turn_before_the_next_round() -> None:
    cases, order = [MLP, Case(WORKLOADS["mlp"], 2)], list[tuple[int, str]]()

    def contest(case: Case, contestant: str) -> Sample:
        order.append((case.threads, contestant))
        return sample(1.0)

    run_rounds(cases, 2, contest, quiet)
    assert order == 2 * [(threads, contestant) for threads in (1, 2) for contestant in CONTESTANTS]


def test_ratios_are_of_one_round_each_and_their_median_counts() -> None:
    results = Results(MLP, [{OURS: sample(ours), TORCH: sample(torch)} for ours, torch in ((2, 4), (9, 3), (1, 1))])
    assert results.ratios("median_ms", TORCH) == [0.5, 1.0, 3.0]


@pytest.mark.parametrize(("ratios", "memory", "count"), [((0.5, 0.84, 0.99), 1, 0), ((0.86,), 1, 1), ((0.9,), 3, 2)])
def test_bounds_are_judged_by_the_median(ratios: tuple[float, ...], memory: int, count: int) -> None:
    assert len(over_bounds(results_of(*ratios, memory=memory))) == count


def test_bounds_that_hold_in_too_few_rounds_are_no_verdict() -> None:
    few = results_of(0.5, 0.5, 0.5, 0.5)
    few.thrown_out = 16
    assert over_bounds(few) == []
    (problem,) = too_few(few, 5)
    assert "1 threads: 4 rounds count and 16 were thrown out beside a busy neighbour; a verdict needs 5." in problem
    assert over_bounds(Results(MLP)) == []
    assert too_few(Results(MLP), 5) != []
    assert too_few(results_of(*(5 * [0.5])), 5) == []


def test_the_table_shows_ratios_with_their_spread_beside_the_bounds() -> None:
    results = results_of(0.7, 0.8, 0.9)
    text = markdown("Title", "Here.", [results])
    assert "| 0.80 (0.70-0.90) | 0.85  |" in text
    assert "| 1.60 (1.40-1.80) |" in text
    (told,) = as_json([results])
    assert told["workload"] == "mlp"
    (figure,) = figures([results, Results(MLP)])
    assert figure == "FIGURE MLP 784-512-256-10 b64, 1 threads, of PyTorch's: time 0.80 (0.70-0.90), memory 0.10"


def test_the_compiled_backend_has_a_table_and_bounds_of_its_own() -> None:
    results = results_of(0.7)
    results.rounds[0][NATIVE] = sample(0.46, peak_bytes=1)
    text = markdown("Title", "Here.", [results])
    assert "| 0.46 (0.46-0.46)        | 0.85  | 0.92 (0.92-0.92)        | 0.90  |" in text
    (problem,) = over_bounds(results)
    assert problem == "MLP 784-512-256-10 b64, 1 threads, compiled: time 0.92 of tuned torch's, the bound is 0.90."
    assert len(figures([results])) == 4


def test_the_stopwatch_counts_steps_and_memory_of_its_own_process() -> None:
    kept: list[bytearray] = []

    def step() -> float:
        kept.append(bytearray(b"x" * 4_000_000))
        return 2.5

    settings = Settings(seconds=0.0, fewest_steps=5, warm_up_steps=2)
    found = measure(step, settings, resident_bytes())
    assert found.steps == 5
    assert len(kept) == 7
    assert found.loss == 2.5
    assert 0 < found.fastest_ms <= found.median_ms
    assert found.peak_bytes >= 7 * 4_000_000 // 2
    assert found.foreign_cores >= 0


def test_every_workload_is_a_model_of_the_zoo() -> None:
    for workload in WORKLOADS.values():
        graph = zoo.build(workload.model, workload.classes, workload.shape)
        assert graph.by_name()["logits"].shape == (workload.classes,)


def test_nobody_has_wide_instructions_where_the_report_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Prescott")
    assert "without AVX-512" in processor(avx2=True)
    for contestant in (OURS, NATIVE, TORCH, TUNED):
        limited = Contest(Path("python"), Path(), read_arguments(["--avx2"])).environment(MLP, contestant)
        assert {name: limited[name] for name in AVX2_AT_MOST} == AVX2_AT_MOST
        free = Contest(Path("python"), Path(), read_arguments([])).environment(MLP, contestant)
        assert AVX2_AT_MOST.keys().isdisjoint(free)  # not even where this machine's owner holds one library back
    assert "OPENBLAS_CORETYPE=Prescott" in held_back(os.environ)


def test_torch_is_looked_for_outside_the_projects_venv(tmp_path: Path) -> None:
    version = torch_venv.TORCH_VERSION
    assert torch_venv.torch_folder({"HEDGEROW_CACHE": str(tmp_path)}) == tmp_path / f"torch-{version}"
    named = {"HEDGEROW_TORCH_VENV": str(tmp_path / "elsewhere"), "HEDGEROW_CACHE": "/nowhere"}
    assert torch_venv.torch_folder(named) == tmp_path / "elsewhere"
    assert torch_venv.torch_python(named) is None


def test_a_profile_adds_up_to_the_step_it_is_of() -> None:
    found = profile(encoded_program(WORKLOADS["mlp"]), "mlp", seconds=0.0)
    operators = {name for name in found if not name.startswith("(")}
    assert {"linear", "sgd_linear", "relu", "cross_entropy"} <= operators
    assert found[PRODUCTS] < sum(found[name] for name in operators) < found[ALL]
    assert found[PRODUCTS] > found["sgd_linear"] > 0
    lines = list(table("mlp", {1: found, 2: {**found, "linear": 0.0, ALL: found[ALL] / 2}}))
    assert lines[1].startswith(ALL)
    assert any(line.startswith("linear ") and line.endswith(" 0.00 ms") for line in lines)
    assert f"{found[ALL] - found[PRODUCTS]:.2f} ms" in lines[-1]
