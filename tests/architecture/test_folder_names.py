"""A folder called `operator` is harmless only as long as nothing turns it into a package."""

import operator
import subprocess
import sys
from pathlib import Path

from support.repository import ROOT


def test_the_standard_library_operator_is_not_shadowed() -> None:
    found = Path(operator.__file__ or "")

    assert ROOT not in found.parents
    assert operator.add(1, 2) == 3


def test_python_started_at_the_root_finds_the_standard_library_operator() -> None:
    script = "import operator, collections; print(operator.__file__)"
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)

    assert ROOT not in Path(result.stdout.strip()).parents


def test_none_of_the_three_files_that_would_shadow_it_exists() -> None:
    shadows = ["operator/__init__.py", "operator/operator.py", "tests/operator/__init__.py"]

    assert [name for name in shadows if (ROOT / name).exists()] == []


def test_only_packages_and_no_modules_lie_directly_in_the_three_source_folders() -> None:
    stray = [
        str(path.relative_to(ROOT)) for top in ("operator", "agent", "plans") for path in (ROOT / top).glob("*.py")
    ]

    assert stray == []


def test_no_module_is_longer_than_400_lines() -> None:
    tops = ("operator", "agent", "plans", "hack", "tests")
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text().splitlines())
        for top in tops
        for path in (ROOT / top).rglob("*.py")
    }

    assert {name: lines for name, lines in lengths.items() if lines > 400} == {}
