"""`hedgerow bench planners`: every strategy on every budget, and the search is never beaten."""

import json

from click.testing import CliRunner

from hedgerow_operator.cli import hedgerow


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(hedgerow, ["bench", "planners", *arguments])
    return result.exit_code, result.output


def test_every_strategy_has_a_row_for_every_budget_and_none_beats_the_search() -> None:
    budgets = ("--budget-percent", "100", "--budget-percent", "90")
    code, text = run("--model", "cnn-small", *budgets, "--jobs", "2", "-o", "json")
    assert code == 0, text
    rows = json.loads(text)
    assert len(rows) == 2 * len({row["strategy"] for row in rows})
    for percent in (100, 90):
        of_budget = {row["strategy"]: row for row in rows if row["budget_percent"] == percent}
        assert {"keep-all", "sqrt-n", "melon", "sage", "dtr", "tte", "optimal"} == set(of_budget)
        best = of_budget["optimal"]
        assert best["peak_bytes"] <= best["budget_bytes"]
        assert best["budget_bytes"] >= best["floor_bytes"]
        for row in of_budget.values():
            assert row["overhead"] is None or row["overhead"] >= best["overhead"] >= 0
            assert row["gap"] is None or row["gap"] >= best["gap"] >= 0
    kept = {row["budget_percent"]: row["peak_bytes"] for row in rows if row["strategy"] == "keep-all"}
    assert kept[100] is not None
    assert kept[90] is None


def test_the_table_has_a_line_for_each_strategy_and_mistakes_are_sentences() -> None:
    code, text = run("--model", "cnn-small", "--budget-percent", "90", "--strategy", "melon", "--jobs", "1")
    assert code == 0, text
    heading, row = text.splitlines()
    assert heading.split()[:3] == ["NETWORK", "NODES", "BUDGET"]
    assert row.split()[0] == "cnn-small"
    code, text = run("--model", "huge")
    assert code == 2
    assert "There is no model 'huge' in the zoo" in text
    assert run("--model", "cnn-small", "--class", "toaster")[0] == 2
