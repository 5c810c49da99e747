"""Keys, names, the memo, and what a planning process makes of a request."""

from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from hedgerow_operator.planning import solver
from hedgerow_operator.planning.memo import Memo
from hedgerow_operator.planning.programs import explain
from hedgerow_operator.planning.requests import plan_name, program_key, program_request
from hedgerow_operator.planning.worker import Planned, Unusable, check, plan
from hedgerow_operator.writing import merge_patch
from hedgerow_plans import codec
from hedgerow_plans.methods.catalogue import Full
from hedgerow_plans.plan import Infeasible
from hedgerow_plans.program import DeviceCosts
from hedgerow_plans.resources.device_class import DeviceClassSpec
from support.worlds import BOARD, job_spec

REQUEST = program_request(job_spec(), "board", BOARD)
TIGHT = replace(
    REQUEST, model="cnn-small", method=Full(), batch_size=1, input_shape=(1, 14, 14), costs=DeviceCosts(10**9, 100)
)


def test_the_key_changes_with_what_the_bytes_depend_on() -> None:
    bigger = DeviceClassSpec.model_validate({"memory": {"budget": "512Ki"}, "compute": BOARD.compute.to_yaml_form()})
    others = [
        program_request(job_spec(method={"full": {}}), "board", BOARD),
        program_request(job_spec(method={"last": {}}), "board", BOARD),
        program_request(job_spec(method={"lora": {"rank": 4, "alpha": 8}}), "board", BOARD),
        program_request(job_spec(), "other", BOARD),
        program_request(job_spec(), "board", bigger),
        replace(REQUEST, batch_size=32),
    ]
    keys = {program_key(request) for request in [REQUEST, *others]}
    assert len(keys) == 7


def test_the_key_does_not_change_with_what_only_the_device_needs() -> None:
    training = {"epochs": 9, "batchSize": 16, "seed": 3, "optimizer": {"sgd": {"learningRate": "0.5"}}}
    squeezed = DeviceClassSpec.model_validate(
        {"memory": {"budget": "256Ki", "allowance": "9Ki"}, "compute": BOARD.compute.to_yaml_form()}
    )
    assert program_key(program_request(job_spec(training=training), "board", squeezed)) == program_key(REQUEST)


def test_plans_are_named_after_what_they_are_for() -> None:
    key = program_key(REQUEST)
    assert plan_name(REQUEST, key) == f"mlp-lora-board-{key[:8]}"


def test_planning_twice_gives_the_same_bytes_and_they_verify() -> None:
    first, second = plan(REQUEST, 60), plan(REQUEST, 60)
    assert isinstance(first, Planned)
    assert isinstance(second, Planned)
    assert first.encoded == second.encoded
    checked = check(first.encoded, REQUEST)
    assert isinstance(checked, Planned)
    assert checked.summary == first.summary
    assert first.summary.digest == codec.digest(first.encoded)
    assert first.summary.floor_bytes < first.summary.peak_bytes <= REQUEST.budget_bytes


def test_the_summary_shows_what_is_proven_of_each_rung_and_the_worst_gap() -> None:
    planned = plan(TIGHT, 60)
    assert isinstance(planned, Planned)
    rungs = planned.summary.rungs
    assert any(rung.strategy == "optimal" for rung in rungs)
    for rung in rungs:
        assert 0 < rung.least_microjoules <= rung.step_microjoules
        assert 0 < rung.working_set_bytes <= rung.max_live_bytes <= rung.peak_bytes
    assert planned.summary.gap_percent == max((rung.gap_percent for rung in rungs), key=float)
    assert planned.summary.columns.gap == f"{planned.summary.gap_percent}%"


def test_without_the_solver_the_ladder_comes_from_the_other_strategies(monkeypatch: pytest.MonkeyPatch) -> None:
    with_solver, key = plan(TIGHT, 60), program_key(TIGHT)
    monkeypatch.setattr(solver, "version", not_installed)
    without = plan(TIGHT, 60)
    assert isinstance(with_solver, Planned)
    assert isinstance(without, Planned)
    assert without.encoded != with_solver.encoded
    assert all(rung.strategy != "optimal" for rung in without.summary.rungs)
    assert program_key(TIGHT) != key


def test_a_missing_solver_is_said_with_the_command_that_adds_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(solver, "version", not_installed)
    solver.say_how_planning_is_done()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "pip install 'hedgerow[planner]'" in caplog.text


def not_installed(name: str) -> str:
    raise PackageNotFoundError(name)


def test_what_does_not_fit_comes_back_with_numbers() -> None:
    outcome = plan(replace(REQUEST, budget_bytes=1024), 60)
    assert isinstance(outcome, Infeasible)
    assert outcome.available_bytes == 1024 < outcome.needed_bytes


GOLDEN = """\
Nothing fits device class board: the smallest plan found needs 36488 bytes (35.6Ki) and spec.memory.budget is 256Ki \
(1024 bytes); nothing can run below 32640 bytes (the largest tensor at the fullest step is w). \
Raise the budget, or choose a smaller batch, method or model."""


def test_nothing_fits_is_said_with_every_number() -> None:
    said = explain(Infeasible(36488, 1024, 32640, "w", "x"), "board", BOARD)
    assert (said.reason, said.message) == ("BudgetTooSmall", GOLDEN)


def test_altered_bytes_are_not_used() -> None:
    planned = plan(REQUEST, 60)
    assert isinstance(planned, Planned)
    program = codec.decode(planned.encoded)
    wrong = replace(program, resident_bytes=program.resident_bytes - 64)
    assert isinstance(check(codec.encode(wrong), None), Unusable)
    assert isinstance(check(planned.encoded[:-1], REQUEST), Unusable)


def test_the_memo_gives_back_what_it_was_given_or_nothing(tmp_path: Path) -> None:
    memo = Memo(tmp_path / "new" / "folder")
    assert memo.read("k") is None
    memo.write("k", b"program" * 1000)
    assert memo.read("k") == b"program" * 1000
    (file,) = (tmp_path / "new" / "folder").iterdir()
    content = file.read_bytes()
    for damaged in (content[:-3], content[:64] + b"?" + content[65:], b"0" * 64 + content[64:], b""):
        file.write_bytes(damaged)
        assert memo.read("k") is None


def test_a_memo_that_cannot_write_costs_nothing_but_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    Memo(tmp_path / "file" / "below").write("k", b"x")


PATCHES = [
    ({}, {"a": 1}, {"a": 1}),
    ({"a": 1, "b": 2}, {"a": 1}, {"b": None}),
    ({"a": {"x": 1, "y": 2}}, {"a": {"x": 1, "z": 3}}, {"a": {"y": None, "z": 3}}),
    ({"a": [1, 2]}, {"a": [1]}, {"a": [1]}),
    ({"a": {"x": 1}}, {"a": {"x": 1}}, {}),
    ({"a": {"x": 1}}, {"a": "text"}, {"a": "text"}),
]


@pytest.mark.parametrize(("before", "after", "patch"), PATCHES)
def test_only_what_changed_is_written(before: dict, after: dict, patch: dict) -> None:  # type: ignore[type-arg]
    assert merge_patch(before, after) == patch
