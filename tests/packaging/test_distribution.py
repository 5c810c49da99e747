"""What a person gets from pip: small on a device, whole in the cluster, and clear when something is missing."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support.repository import ROOT

PROGRAMS = {
    "hedgerow": "operator",
    "hedgerow-operator": "operator",
    "kubectl-hedgerow": "operator",
    "hedgerow-agent": "agent",
}
MEGABYTE = 1_000_000

pytestmark = pytest.mark.install


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(folder),
        str(ROOT),
    ]
    subprocess.run(command, check=True, timeout=300)
    return next(folder.glob("hedgerow-*.whl"))


@pytest.fixture(scope="module")
def locked_versions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lock without its hashes: pip refuses hashes in a constraints file once a local wheel is installed with it."""
    lock = (ROOT / "hack/requirements/dev.txt").read_text()
    pins = re.findall(r"^[A-Za-z0-9_.-]+==[^\\\n]+", lock, flags=re.MULTILINE)
    constraints = tmp_path_factory.mktemp("lock") / "constraints.txt"
    constraints.write_text("\n".join(pin.strip() for pin in pins) + "\n")
    return constraints


def install(folder: Path, wheel: Path, extra: str, constraints: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
    target = f"{wheel}[{extra}]" if extra else str(wheel)
    command = [str(folder / "bin/pip"), "install", "-q", "-c", str(constraints), target]
    subprocess.run(command, check=True, timeout=600)
    return folder


def run(venv: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(venv / "bin" / command[0]), *command[1:]], capture_output=True, text=True, timeout=60, check=False
    )


def size_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


@pytest.fixture(scope="module")
def agent_venv(tmp_path_factory: pytest.TempPathFactory, wheel: Path, locked_versions: Path) -> Path:
    return install(tmp_path_factory.mktemp("agent") / "venv", wheel, "agent", locked_versions)


@pytest.fixture(scope="module")
def bare_venv(tmp_path_factory: pytest.TempPathFactory, wheel: Path, locked_versions: Path) -> Path:
    return install(tmp_path_factory.mktemp("bare") / "venv", wheel, "", locked_versions)


def test_the_wheel_holds_the_three_packages_and_nothing_else(wheel: Path) -> None:
    tops = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}

    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "hedgerow_operator",
        "hedgerow_agent",
        "hedgerow_plans",
    }


def test_an_agent_installation_runs_the_agent_and_has_no_cluster_library(agent_venv: Path) -> None:
    help_text = run(agent_venv, "hedgerow-agent", "--help")

    assert help_text.returncode == 0, help_text.stderr
    assert "run" in help_text.stdout
    for module in ("kopf", "lightkube", "kubernetes", "aiohttp", "scipy"):
        result = run(agent_venv, "python", "-c", f"import {module}")
        assert f"No module named '{module}'" in result.stderr


def test_an_agent_installation_is_under_150_megabytes(agent_venv: Path) -> None:
    total_bytes = size_bytes(agent_venv)
    sys.stdout.write(f"FIGURE agent installation: {total_bytes / MEGABYTE:.1f} MB\n")

    assert total_bytes < 150 * MEGABYTE, f"{total_bytes / MEGABYTE:.1f} MB"


@pytest.mark.parametrize(("program", "extra"), PROGRAMS.items())
def test_a_program_without_its_extra_says_which_pip_command_adds_it(bare_venv: Path, program: str, extra: str) -> None:
    result = run(bare_venv, program, "--help")

    assert result.returncode == 1
    assert f"pip install 'hedgerow[{extra}]'" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_agent_installation_has_the_operators_programs_too_and_they_explain_themselves(agent_venv: Path) -> None:
    result = run(agent_venv, "hedgerow-operator")

    assert result.returncode == 1
    assert "pip install 'hedgerow[operator]'" in result.stderr
