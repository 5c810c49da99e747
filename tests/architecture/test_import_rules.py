"""The import rules hold, and a breach is told in a sentence."""

import ast
from pathlib import Path

import pytest

from support.repository import ROOT, copy_sources, make

BUILTINS_THAT_DO_IO = {"open", "print", "input", "exec", "eval", "__import__", "breakpoint"}


def test_the_rules_hold_on_an_unchanged_copy(tmp_path: Path) -> None:
    result = make(copy_sources(tmp_path), "imports")

    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("module", "statement", "sentence"),
    [
        pytest.param(
            "agent/hedgerow_agent/launch.py",
            "import kopf",
            "A device carries no cluster library, no solver and no plotting",
            id="the agent imports kopf",
        ),
        pytest.param(
            "plans/hedgerow_plans/plan.py",
            "import time",
            "Plans has no clock: pass the time in as an argument.",
            id="plans imports the clock",
        ),
        pytest.param(
            "plans/hedgerow_plans/codec.py",
            "from pathlib import Path",
            "Plans touches no file, socket, process or thread",
            id="plans imports files",
        ),
        pytest.param(
            "plans/hedgerow_plans/verify.py",
            "from hedgerow_plans.planning import layout",
            "Verification shares nothing with the planners it checks.",
            id="verify imports a planner",
        ),
        pytest.param(
            "agent/hedgerow_agent/machine/__init__.py",
            "import paho.mqtt.client",
            "One module on each side speaks MQTT",
            id="a second module speaks MQTT",
        ),
        pytest.param(
            "operator/hedgerow_operator/registry.py",
            "import kopf",
            "Only the handlers and the entry point know kopf.",
            id="kopf outside the handlers",
        ),
        pytest.param(
            "agent/hedgerow_agent/core/arena.py",
            "import hedgerow_agent.store",
            "The training core knows numpy and plans",
            id="the core imports the agent",
        ),
    ],
)
def test_a_breach_fails_with_a_sentence(tmp_path: Path, module: str, statement: str, sentence: str) -> None:
    broken = copy_sources(tmp_path) / module
    broken.write_text(f"{broken.read_text()}\n{statement}\n")

    result = make(tmp_path, "imports")

    assert result.returncode != 0
    assert sentence in result.stdout
    assert "BROKEN" in result.stdout


def test_plans_calls_no_builtin_that_reads_or_writes() -> None:
    calls = [
        f"{path.relative_to(ROOT)}:{node.lineno} calls {node.func.id}()"
        for path in sorted((ROOT / "plans").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BUILTINS_THAT_DO_IO
    ]

    assert calls == []
