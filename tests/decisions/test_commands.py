"""Commands that need no cluster: what the zoo has, what fits, and keys."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from hedgerow_operator import plan_command
from hedgerow_operator.cli import hedgerow
from hedgerow_operator.planning.ladders import Searches
from hedgerow_operator.plugin import plugin
from hedgerow_plans import codec
from hedgerow_plans.methods.catalogue import Full
from hedgerow_plans.models.perceptron import mlp
from hedgerow_plans.planning.ladder import Hope, chosen_budgets, search_downwards
from hedgerow_plans.planning.problem import DeviceCosts, Problem, pose
from hedgerow_plans.planning.residents import place_residents
from hedgerow_plans.planning.strategies import Limits, optimal
from hedgerow_plans.protocol.keys import parse_private_key, parse_trusted_keys
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Sgd
from hedgerow_plans.verify import verify_program
from support.worlds import BOARD


@pytest.fixture
def class_file(tmp_path: Path) -> Path:
    file = tmp_path / "board.yaml"
    manifest = {"apiVersion": "hedgerow.dev/v1alpha1", "kind": "DeviceClass", "metadata": {"name": "board"}}
    file.write_text(yaml.safe_dump(manifest | {"spec": BOARD.to_yaml_form()}))
    return file


@pytest.fixture(autouse=True)
def own_memo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_command, "memo_folder", lambda: tmp_path / "memo")


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(hedgerow, [str(argument) for argument in arguments])
    return result.exit_code, result.output


def test_examples_in_the_help_stand_on_lines_of_their_own() -> None:
    lines = run("--help")[1].splitlines()

    assert "\\b" not in "".join(lines)
    assert any(line.strip().startswith("hedgerow release device/pump-07") for line in lines)


def test_help_teaches() -> None:
    code, text = run("--help")
    assert code == 0
    for word in ("hedgerow plan --model", "hedgerow get jobs", "rollback device/pump-07"):
        assert word in text
    assert "release device/pump-07" in CliRunner().invoke(plugin, ["--help"]).output


def test_the_ladder_of_a_board_is_shown(class_file: Path) -> None:
    code, text = run("plan", "--model", "mlp", "--method", "lora:4", "--class-file", class_file, "--batch", "16")
    assert code == 0, text
    rows = [line.split() for line in text.splitlines()[1:] if line[:1].isdigit()]
    assert len(rows) >= 3
    peaks, live, floors = ([int(row[column]) for row in rows] for column in (4, 5, 6))
    assert peaks == sorted(peaks, reverse=True)
    assert peaks[0] <= 256 * 1024
    assert all(floor <= least <= peak for floor, least, peak in zip(floors, live, peaks, strict=True))
    assert all(row[-1].endswith("%") for row in rows)


def test_a_ladder_is_planned_once_and_its_program_can_be_written(class_file: Path, tmp_path: Path) -> None:
    arguments = ("plan", "--model", "mlp", "--class-file", class_file, "--batch", "16", "-o", "json")
    code, first = run(*arguments, "--out", tmp_path / "first.program")
    assert code == 0, first
    kept = list((tmp_path / "memo").iterdir())
    assert len(kept) == 1
    again = run(*arguments, "--out", tmp_path / "again.program")[1]
    anew = run(*arguments, "--out", tmp_path / "anew.program", "--fresh", "--jobs", "2")[1]
    documents = [json.loads(text) for text in (first, again, anew)]
    assert documents[1].pop("seconds") == 0 < documents[0].pop("seconds")
    assert documents[2].pop("seconds") > 0
    assert documents[0] == documents[1] == documents[2]
    encoded = (tmp_path / "first.program").read_bytes()
    assert encoded == (tmp_path / "again.program").read_bytes() == (tmp_path / "anew.program").read_bytes()
    program = codec.decode(encoded)
    assert not verify_program(program, 256 * 1024)
    assert documents[0]["program"] == codec.digest(encoded)
    peaks = [rung["peakBytes"] for rung in documents[0]["rungs"]]
    assert peaks == [rung.promise.peak_bytes for rung in program.rungs]


def test_searches_in_several_processes_find_the_same_in_the_same_order() -> None:
    problems = [chain(layers) for layers in (3, 4)]
    hopes = [Hope(optimal.plan, it, Limits(10**9), tuple(chosen_budgets(it, 10**9)[1:3]), ()) for it in problems]
    seen: list[tuple[int, int]] = []

    def report(done: int, count: int) -> None:
        seen.append((done, count))

    assert list(Searches(2, report)(search_downwards, hopes)) == list(map(search_downwards, hopes))
    assert seen == [(0, 2), (1, 2), (2, 2)]


def chain(layers: int) -> Problem:
    graphs = differentiate(Full().apply(mlp(4, (16,), hidden=(16,) * layers)).graph, Sgd(), 16)
    return pose(graphs.direct, place_residents(graphs.all()), DeviceCosts(10**9, 100), micro_batch=16)


@pytest.mark.parametrize("strategy", ["keep-all", "sqrt-n", "melon", "sage", "dtr", "tte", "poet", "optimal"])
def test_any_strategy_can_be_asked_by_name(class_file: Path, strategy: str) -> None:
    code, text = run(
        *("plan", "--model", "mlp", "--class-file", class_file, "--batch", "1", "--strategy", strategy, "-o", "json")
    )
    assert code == 0, text
    used = {rung["strategy"] for rung in json.loads(text)["rungs"]}
    assert used == {strategy} or strategy == "optimal"


def test_a_plan_is_drawn(class_file: Path, tmp_path: Path) -> None:
    arguments = ("plan", "--model", "mlp", "--method", "lora:4", "--class-file", class_file, "--batch", "16")
    assert run(*arguments, "--plot", tmp_path / "plan.png", "--rung", "2")[0] == 0
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    assert run(*arguments, "--plot", tmp_path / "plan.svg")[0] == 0
    assert b"<svg" in (tmp_path / "plan.svg").read_bytes()
    assert "is no picture; write NAME.png" in run(*arguments, "--plot", tmp_path / "plan.doc")[1]
    assert (
        "There is no rung 60; the ladder has 1 to " in run(*arguments, "--plot", tmp_path / "x.png", "--rung", "60")[1]
    )


MISTAKES = {
    "no fit": (["--model", "mlp", "--budget", "1Ki"], 3, "bytes are needed, the budget is 1Ki (1024 bytes)"),
    "no model": (["--model", "huge"], 2, "There is no model 'huge' in the zoo; known are ad-autoencoder, "),
    "no method": (
        ["--model", "mlp", "--method", "magic"],
        2,
        "'magic' is not a method; write full, last, lora (of rank 4), lora:RANK",
    ),
    "no shape": (["--model", "mlp", "--shape", "wide"], 2, "'wide' is not a shape; write one to four whole numbers"),
    "no size": (["--model", "mlp", "--budget", "much"], 2, "is not a size"),
    "no strategy of models": (["--model", "mlp", "--strategy", "greedy"], 2, "'greedy' plans no models; choose one of"),
    "nowhere to write": (
        ["--model", "mlp", "--out", "/nowhere/at/all"],
        2,
        "/nowhere/at/all cannot be written",
    ),
}


@pytest.mark.parametrize(("arguments", "expected", "text"), MISTAKES.values(), ids=MISTAKES)
def test_a_plan_that_cannot_be_made_is_explained(
    class_file: Path, arguments: list[str], expected: int, text: str
) -> None:
    code, output = run("plan", "--class-file", class_file, *arguments)
    assert code == expected
    assert text in output


def test_a_file_that_is_no_class_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("kind: Pod")
    assert "holds no DeviceClass" in run("plan", "--model", "mlp", "--class-file", tmp_path / "x.yaml")[1]
    assert "cannot be read" in run("plan", "--model", "mlp", "--class-file", tmp_path / "none.yaml")[1]


def test_a_generated_key_is_private_and_its_line_is_what_agents_trust(tmp_path: Path) -> None:
    file = tmp_path / "signing.key"
    code, text = run("keys", "generate", "--output", file)
    assert code == 0
    assert file.stat().st_mode & 0o077 == 0
    key = parse_private_key(file.read_text())
    name, value = text.splitlines()[-1].removeprefix("trusted = { ").removesuffix(" }").split(" = ")
    (trusted,) = parse_trusted_keys({name: value.strip('"')}).values()
    assert trusted.public_bytes_raw() == key.public_key().public_bytes_raw()
    assert "is not overwritten" in run("keys", "generate", "--output", file)[1]
    assert run("keys", "show", file)[1] in text


def test_a_file_without_a_key_is_named_and_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "other.key"
    file.write_text("c2VjcmV0")

    code, text = run("keys", "show", file)

    assert code == 1
    assert f"{file} holds no signing key" in text
    assert "c2VjcmV0" not in text
