"""`hedgerow models` and `hedgerow tables`: for people as a table, for programs as JSON, and a sentence for mistakes."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from hedgerow_operator import zoo_commands
from hedgerow_operator.cli import hedgerow
from hedgerow_operator.method_words import HELP, parse_method
from hedgerow_plans.methods.catalogue import Bias, Last, LiteResidual, Lora, Method, MiniLearn, Sparse
from hedgerow_plans.models import zoo
from support.sampling import sample
from support.worlds import BOARD

COUNTS = {
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "vgg11": 132_863_336,
    "vgg16": 138_357_544,
    "vgg19": 143_667_240,
    "densenet121": 7_978_856,
    "mobilenetv2": 3_504_872,
    "squeezenet": 1_248_424,
    "proxylessnas-mobile": 4_080_512,
    "bert-base": 109_482_240,
}
MACS = {"ad-autoencoder": 264_192, "resnet8": 12_501_632, "ds-cnn": 2_656_768, "mobilenetv1-0.25": 7_489_664}


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(hedgerow, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def refusal(*arguments: str | Path) -> str:
    result = CliRunner().invoke(hedgerow, [str(argument) for argument in arguments])
    assert result.exit_code != 0
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.output


def listed(*arguments: str) -> dict[str, dict[str, object]]:
    return {item["name"]: item for item in json.loads(run("models", "-o", "json", *arguments))}


def test_every_model_is_listed_with_its_published_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zoo_commands, "_METHODS", {"last": Last()})  # sizes do not depend on it, and all take long
    found = listed()
    assert tuple(found) == zoo.names()
    assert {name: found[name]["parameters"] for name in COUNTS} == COUNTS
    assert {name: found[name]["macs"] for name in MACS} == MACS


def test_training_bytes_are_given_for_every_method_that_applies() -> None:
    names = {*sample(zoo.names(), 8), "vgg11"}
    found = listed(*(word for name in sorted(names) for word in ("--only", name)))
    assert set(found) == names
    for name, item in found.items():
        bytes_by_method = item["trainingBytes"]
        assert isinstance(bytes_by_method, dict)
        assert bytes_by_method["full"] > bytes_by_method["last"] > 0, name
        assert isinstance(item["activationBytes"], int)
        assert 0 < item["activationBytes"] < bytes_by_method["full"]
    assert found["vgg11"]["trainingBytes"]["norm-last"] is None  # type: ignore[index]


def test_the_table_has_a_line_for_every_model_asked_for() -> None:
    heading, *lines = run("models", "--only", "resnet18", "--only", "mlp").splitlines()
    assert heading.split()[:4] == ["MODEL", "PARAMETERS", "MACS", "ACTIVATIONS"]
    assert [line.split()[0] for line in lines] == ["resnet18", "mlp"]
    assert "11,689,512" in lines[0]
    assert lines[1].split()[-2:] == ["-", "-"]  # no lite residual without images, and fewer than 12 layers


def test_one_model_is_shown_with_its_memory_and_its_cost_on_a_board(tmp_path: Path) -> None:
    manifest = {"apiVersion": "hedgerow.dev/v1alpha1", "kind": "DeviceClass", "metadata": {"name": "board"}}
    file = tmp_path / "board.yaml"
    file.write_text(yaml.safe_dump(manifest | {"spec": BOARD.to_yaml_form()}))
    text = run("models", "show", "mlp", "--method", "last", "--batch", "4", "--class-file", file, "--nodes")
    for word in ("sha256", "keep-all peak", "least working set", "step on board", "linear(relu2, logits.weight"):
        assert word in text


@pytest.mark.parametrize(
    ("word", "method"),
    [
        ("bias", Bias()),
        ("lora:4:8", Lora(4, 8)),
        ("lite-residual:biases", LiteResidual(residuals=False)),
        ("sparse:12", Sparse(12)),
        ("minilearn:24", MiniLearn(24)),
    ],
)
def test_every_method_has_a_word(word: str, method: Method) -> None:
    assert parse_method(word) == method
    assert word.split(":", maxsplit=1)[0] in HELP


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_a_model_is_drawn(tmp_path: Path, ending: str) -> None:
    picture = tmp_path / f"resnet18.{ending}"
    assert f"Wrote the picture to {picture}." in run("models", "show", "resnet18", "--plot", picture)
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize(("paper", "count"), [("tinytl", 39), ("tte", 16)])
def test_a_papers_figures_are_printed_beside_ours(paper: str, count: int) -> None:
    rows = json.loads(run("tables", paper, "-o", "json"))
    assert len(rows) == count
    for row in rows:
        assert abs(row["ours"] - row["published"]) < (1 if row["unit"] == "KiB" else 0.05)
    lines = run("tables", paper).splitlines()
    assert lines[0].split() == ["FIGURE", "PUBLISHED", "OURS", "UNIT", "DIFFERENCE"]
    assert len(lines[1 : lines.index("")]) == count
    assert all(line.startswith("Published: ") for line in lines[lines.index("") + 1 :])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("models", "show", "huge"), "There is no model 'huge' in the zoo; known are"),
        (("models", "show", "mlp", "--method", "magic"), "'magic' is not a method"),
        (("models", "show", "mlp", "--plot", "mlp.doc"), "write NAME.svg or NAME.png"),
        (("models", "show", "mlp", "--method", "lora:0"), "'lora:0' is not a method; write full, last, lora (of"),
        (("models", "show", "mlp", "--method", "norm-last"), "Method norm-last cannot train 'mlp': it has no norm"),
        (("models", "--only", "huge"), "There is no model 'huge' in the zoo; known are"),
        (("models", "-o", "xml"), "'xml' is not one of 'table', 'json'"),
        (("tables", "gpt"), "'gpt' is not one of 'tinytl', 'tte', 'poet', 'flip'"),
    ],
)
def test_a_mistake_gets_a_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    text = refusal(*arguments)
    assert sentence in text
    assert "Traceback" not in text
