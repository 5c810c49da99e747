"""What a person gets from pip: small on a device, whole in the cluster, and clear when something is missing."""

import os
import platform
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from support.devices import Device
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
    command = [str(folder / "bin/pip"), "install", "-q", "-c", str(constraints), f"{wheel}[{extra}]"]
    subprocess.run(command, check=True, timeout=600)
    return folder


def venv_without_pip(folder: Path) -> Path:
    """Make a venv in a moment; the pip of these tests installs into it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=120)
    return folder


def pip_for(venv: Path) -> tuple[str, ...]:
    return (sys.executable, "-m", "pip", "--python", str(venv / "bin/python"), "install")


def run(venv: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(venv / "bin" / command[0]), *command[1:]],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=without_compiler(venv),
    )


def without_compiler(venv: Path) -> dict[str, str]:
    """The environment of a machine that has this Python and no compiler."""
    kept = {name: value for name, value in os.environ.items() if name not in {"CC", "HEDGEROW_BACKEND"}}
    return {**kept, "PATH": str(venv / "bin")}


def backend_of(venv: Path, folder: Path) -> str:
    """What the doctor says about the backend."""
    device = Device(folder, "alone", 1)
    device.write_files()
    findings = run(venv, "hedgerow-agent", "doctor", "--config", str(device.config)).stdout.splitlines()
    return next(line.partition("backend: ")[2] for line in findings if "backend: " in line)


def size_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


@pytest.fixture(scope="module")
def agent_venv(tmp_path_factory: pytest.TempPathFactory, wheel: Path, locked_versions: Path) -> Path:
    return install(tmp_path_factory.mktemp("agent") / "venv", wheel, "agent", locked_versions)


@pytest.fixture(scope="module")
def bare_venv(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    venv = venv_without_pip(tmp_path_factory.mktemp("bare") / "venv")
    subprocess.run([*pip_for(venv), "-q", str(wheel)], check=True, timeout=600)
    return venv


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


def test_the_wheel_is_for_this_platform_and_for_every_python(wheel: Path) -> None:
    _name, _version, python, abi, system = wheel.stem.split("-")

    assert (python, abi) == ("py3", "none")
    assert system.endswith(f"_{platform.machine()}")


def test_an_installed_wheel_trains_by_the_library_where_there_is_no_compiler(agent_venv: Path, tmp_path: Path) -> None:
    assert backend_of(agent_venv, tmp_path).startswith("native, for ")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(folder)]
    subprocess.run(command, check=True, cwd=ROOT, timeout=120)
    return next(folder.glob("*.tar.gz"))


def test_the_sdist_holds_what_the_library_is_built_from(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    tracked = subprocess.run(["git", "ls-files", "native"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(tracked.stdout.split()) <= names
    assert not any(name.endswith(".so") for name in names)


def test_the_sdist_installs_without_a_compiler_and_trains_in_numpy_with_one_sentence(
    sdist: Path, agent_venv: Path, locked_versions: Path, tmp_path: Path
) -> None:
    venv = venv_without_pip(tmp_path / "venv")
    packages = next(venv.glob("lib/python*/site-packages"))
    # What the agent depends on is there already, in the other venv; only hedgerow itself is to come from the sdist.
    (packages / "others.pth").write_text(str(next(agent_venv.glob("lib/python*/site-packages"))) + "\n")
    options = ("-v", "--no-deps", "-c", str(locked_versions), "--ignore-installed", str(sdist))
    installed = run(venv, *pip_for(venv), *options)

    assert installed.returncode == 0, installed.stdout + installed.stderr
    assert (installed.stdout + installed.stderr).count("There is no C compiler here") == 1
    assert not list(packages.rglob("libhedgerow.so"))
    missing = packages / "hedgerow_agent/core/native/libhedgerow.so"
    assert backend_of(venv, tmp_path / "device") == (
        f"numpy. The compiled backend is not installed ({missing} is missing); training goes on in numpy."
    )
