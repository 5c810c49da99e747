"""Commands that need no cluster: what the zoo has, what fits, and keys."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from hedgerow_operator.cli import hedgerow
from hedgerow_operator.plugin import plugin
from hedgerow_plans.protocol.keys import parse_private_key, parse_trusted_keys
from support.worlds import BOARD


@pytest.fixture
def class_file(tmp_path: Path) -> Path:
    file = tmp_path / "board.yaml"
    manifest = {"apiVersion": "hedgerow.dev/v1alpha1", "kind": "DeviceClass", "metadata": {"name": "board"}}
    file.write_text(yaml.safe_dump(manifest | {"spec": BOARD.to_yaml_form()}))
    return file


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
    rows = [line.split() for line in text.splitlines()[1:-1]]
    assert len(rows) >= 3
    peaks = [int(row[4]) for row in rows]
    assert peaks == sorted(peaks, reverse=True)
    assert peaks[0] <= 256 * 1024


MISTAKES = {
    "no fit": (["--model", "mlp", "--budget", "1Ki"], "bytes are needed, the budget is 1Ki (1024 bytes)"),
    "no model": (["--model", "huge"], "There is no model 'huge' in the zoo; known are ad-autoencoder, "),
    "no method": (["--model", "mlp", "--method", "magic"], "'magic' is not a method; write full, last, lora:RANK"),
    "no shape": (["--model", "mlp", "--shape", "wide"], "'wide' is not a shape; write one to four whole numbers"),
    "no size": (["--model", "mlp", "--budget", "much"], "is not a size"),
}


@pytest.mark.parametrize(("arguments", "text"), MISTAKES.values(), ids=MISTAKES)
def test_a_plan_that_cannot_be_made_is_explained(class_file: Path, arguments: list[str], text: str) -> None:
    code, output = run("plan", "--class-file", class_file, *arguments)
    assert code == 1
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
