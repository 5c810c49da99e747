"""Nobody adds an operator and forgets a part of it: kernel, arithmetic, or a gradient that was checked."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from hedgerow_agent.core.kernels import KERNELS
from hedgerow_plans.graph import table
from hedgerow_plans.graph.operator import Operator, no_cost

GRADIENT_TESTS = sorted(
    path for pattern in ("test_gradients_of_*.py", "test_losses.py") for path in Path(__file__).parent.glob(pattern)
)

MOVE_DATA = {"input", "reshape", "zero", "concat", "split", "slice", "pad", "transpose", "embedding", "reorder"}
"""Operators that copy or clear and compute nothing, hence no arithmetic."""


GRADIENTS = {"sum_to"}
"""Gradients of operators whose name does not say so."""

AFTER_DIFFERENTIATING = {"reorder"}
"""Operators that are put into graphs whose gradients stand there already."""


AFTER_GRADIENTS = {"sum_squares", "clip_factor"}
"""Operators that work on gradients; nobody differentiates those."""


def texts(path: Path) -> Iterator[str]:
    """Yield every text that stands in a test file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


CHECKED = {text for path in GRADIENT_TESTS for text in texts(path)}


def is_made_by_a_rule(row: Operator) -> bool:
    """Gradients of operators carry the name of what they belong to."""
    return "_grad" in row.name or row.name in GRADIENTS


def changes_in_place(row: Operator) -> bool:
    return row.updates[1] > 0


@pytest.mark.parametrize("row", table.OPERATORS.values(), ids=lambda row: row.name)
def test_an_operator_is_complete(row: Operator) -> None:
    assert row.name in KERNELS
    if row.name not in MOVE_DATA:
        assert row.flops is not no_cost, "it says nothing about its arithmetic"
    if row.backward:
        assert row.name in CHECKED, f"none of {[path.name for path in GRADIENT_TESTS]} checks its gradient"
    elif row.name not in AFTER_DIFFERENTIATING:
        source = row.inputs == (0, 0) or row.name in AFTER_GRADIENTS
        assert is_made_by_a_rule(row) or changes_in_place(row) or source, "it has no backward rule"


def test_there_are_gradient_tests_to_look_at() -> None:
    assert len(GRADIENT_TESTS) >= 3
    assert "batch_norm" in CHECKED
    assert "no such operator" not in CHECKED


def test_no_kernel_is_left_over() -> None:
    assert set(KERNELS) == set(table.OPERATORS)
