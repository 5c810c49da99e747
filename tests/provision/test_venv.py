"""The repository's venv: made from the lock, left alone when it is current, mended when it is not."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from provision.problems import Problem
from provision.pythons import BEGUN, STAMP, make_project_venv, next_step, stamp_of
from support.fake_machine import Machine

BACKEND = '''
"""A build backend that needs nothing: an editable wheel of one path file."""
import pathlib, zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "tiny-1.0-py3-none-any.whl"
    metadata = "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n"
    wheel = "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w") as archive:
        archive.writestr("tiny.pth", str(pathlib.Path.cwd()))
        archive.writestr("tiny-1.0.dist-info/METADATA", metadata)
        archive.writestr("tiny-1.0.dist-info/WHEEL", wheel)
        archive.writestr("tiny-1.0.dist-info/RECORD", "")
    return name
'''
PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "tiny"
version = "1.0"
"""


@pytest.mark.parametrize(
    ("finished", "begun", "python_runs", "step"),
    [
        pytest.param("now", None, True, "nothing", id="current"),
        pytest.param("before", None, True, "rebuild", id="made from another lock"),
        pytest.param("now", None, False, "rebuild", id="its Python does not run"),
        pytest.param(None, "now", True, "continue", id="interrupted while installing"),
        pytest.param(None, "before", True, "rebuild", id="interrupted with another lock"),
        pytest.param(None, None, True, "rebuild", id="not made by us"),
        pytest.param(None, None, False, "rebuild", id="not there"),
    ],
)
def test_what_a_venv_needs(finished: str | None, begun: str | None, python_runs: bool, step: str) -> None:
    assert next_step("now", finished, begun, python_runs) == step


def test_the_stamp_depends_on_lock_project_python_and_place() -> None:
    made = [
        stamp_of(b"lock", b"project", "3.11.7", Path("/a")),
        stamp_of(b"lock2", b"project", "3.11.7", Path("/a")),
        stamp_of(b"lock", b"project2", "3.11.7", Path("/a")),
        stamp_of(b"lock", b"project", "3.12.1", Path("/a")),
        stamp_of(b"lock", b"project", "3.11.7", Path("/b")),
    ]
    assert len(set(made)) == 5


def repository_in(folder: Path) -> Path:
    (folder / "hack" / "requirements").mkdir(parents=True)
    (folder / "hack" / "requirements" / "dev.txt").write_text("")
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "backend.py").write_text(BACKEND)
    (folder / "tiny.py").write_text("")
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return repository_in(tmp_path / "repository")


def imports_tiny(venv: Path) -> bool:
    return subprocess.run([venv / "bin" / "python", "-c", "import tiny"], check=False).returncode == 0


@dataclass(frozen=True)
class Made:
    """A repository whose venv was made once for all tests, with what was told about it."""

    repository: Path
    machine: Machine
    told: str

    @property
    def venv(self) -> Path:
        return self.repository / ".venv"

    def make_again(self) -> str:
        return make_project_venv(self.repository, self.machine.cache, self.machine.environ)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("made")
    repository, machine = repository_in(folder / "repository"), Machine(folder)
    return Made(repository, machine, make_project_venv(repository, machine.cache, machine.environ))


def test_a_real_venv_is_made_from_the_lock(made: Made) -> None:
    assert made.told.endswith(f"{made.venv} (installed from the lock)")
    assert imports_tiny(made.venv)
    assert not (made.venv / BEGUN).exists()


def test_a_venv_that_is_current_is_left_alone(made: Made) -> None:
    before = (made.venv / STAMP).stat().st_mtime_ns
    assert "up to date" in made.make_again()
    assert (made.venv / STAMP).stat().st_mtime_ns == before


def test_a_venv_whose_python_is_gone_is_made_again(made: Made) -> None:
    (made.venv / "left-over").write_text("")
    (made.venv / "bin" / "python").unlink()
    (made.venv / "bin" / "python").symlink_to("/nowhere/python")
    assert "linked from the cache" in made.make_again()
    assert imports_tiny(made.venv)
    assert not (made.venv / "left-over").exists()


def test_another_clone_links_the_packages_into_the_venv_that_the_environment_names(
    made: Made, repository: Path
) -> None:
    environ, venv = made.machine.environ | {"HEDGEROW_VENV": ".venv-other"}, repository / ".venv-other"

    told = make_project_venv(repository, made.machine.cache, environ)

    assert told.endswith(f"{venv} (linked from the cache)")
    assert (venv / STAMP).is_file()
    assert not (repository / ".venv").exists()
    assert imports_tiny(venv)
    pip = subprocess.run([venv / "bin" / "pip", "--version"], capture_output=True, text=True, check=True)
    assert str(venv) in pip.stdout


def test_a_folder_that_is_no_venv_is_never_cleared(repository: Path, machine: Machine) -> None:
    precious = repository / "thesis" / "chapter-1"
    precious.parent.mkdir()
    precious.write_text("years of work")
    machine.variables["HEDGEROW_VENV"] = "thesis"

    with pytest.raises(Problem, match="is not a virtual environment, so it is left alone: move it away, or set"):
        make_project_venv(repository, machine.cache, machine.environ)

    assert precious.read_text() == "years of work"
