"""Nobody adds an encoder and forgets to compare it, nor a kernel that nothing can reach."""

import ast
from collections.abc import Iterator
from pathlib import Path

from hedgerow_agent.core.native import encoders
from hedgerow_agent.core.native.encoders import ENCODERS
from hedgerow_agent.core.native.library import Library

TWIN_TESTS = sorted(Path(__file__).parent.glob("test_kernel_twins*.py"))
ENCODER_SOURCES = sorted(Path(encoders.__file__).parent.glob("*.py"))


def texts(node: ast.AST) -> Iterator[str]:
    """Yield every text below a node, and the names of keyword arguments."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value
        elif isinstance(part, ast.keyword) and part.arg is not None:
            yield part.arg


def declared(path: Path) -> Iterator[str]:
    """Yield the operators that tests say they compare; that they do is looked at when they run."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) in ("compares", "compares_each"):
                    yield from texts(decorator)


COMPARED = {op for path in TWIN_TESTS for op in declared(path)}


def test_every_encoder_is_compared_with_its_numpy_twin() -> None:
    assert set(ENCODERS) - COMPARED == set()


def test_no_comparison_is_left_over() -> None:
    assert COMPARED - set(ENCODERS) == set()


def test_every_kernel_is_what_some_encoder_asks_for(library: Library) -> None:
    named = {text for path in ENCODER_SOURCES for text in texts(ast.parse(path.read_text(encoding="utf-8")))}
    assert set(library.operators) - named == set()
