"""Packages that one clone has installed and another links: whole and as they were, or not at all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from provision import packages
from provision.cache import PARTIAL

MODULE = Path("lib/python3/site-packages/tiny.py")
SCRIPT = Path("bin/tiny")


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """Something like a venv: a Python, what every venv has, and one package with a program."""
    folder = tmp_path / "first" / ".venv"
    for name, text in {
        "pyvenv.cfg": "home = here",
        "bin/activate": str(folder),
        str(MODULE): "WORD = 'tiny'\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "bin" / "python").symlink_to(sys.executable)
    script = folder / SCRIPT
    script.write_text(f"#!{folder}/bin/python\nprint(__file__)\n")
    script.chmod(0o755)
    return folder


def bare(folder: Path) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    return folder


def test_another_venv_gets_the_packages_and_programs_that_start_its_own_python(venv: Path, tmp_path: Path) -> None:
    second = bare(tmp_path / "second" / ".venv")
    packages.keep(tmp_path, "key", venv)

    assert packages.restore(tmp_path, "key", second)

    assert (second / MODULE).read_text() == "WORD = 'tiny'\n"
    assert (second / SCRIPT).read_text().startswith(f"#!{second}/bin/python\n")
    done = subprocess.run([second / SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(second / SCRIPT)
    assert not (second / "pyvenv.cfg").exists()
    assert not (second / "bin" / "activate").exists()


def test_what_is_linked_takes_no_room_of_its_own(venv: Path, tmp_path: Path) -> None:
    second = bare(tmp_path / "second" / ".venv")
    packages.keep(tmp_path, "key", venv)
    packages.restore(tmp_path, "key", second)

    assert (second / MODULE).samefile(venv / MODULE)


def test_a_disk_without_links_gets_copies(venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise OSError(18, "Invalid cross-device link", str(source), None, str(target))

    monkeypatch.setattr(os, "link", refuse)
    second = bare(tmp_path / "second" / ".venv")
    packages.keep(tmp_path, "key", venv)

    assert packages.restore(tmp_path, "key", second)
    assert (second / MODULE).read_text() == "WORD = 'tiny'\n"
    assert not (second / MODULE).samefile(venv / MODULE)


def test_packages_that_somebody_edited_are_used_by_nobody_and_kept_anew(venv: Path, tmp_path: Path) -> None:
    packages.keep(tmp_path, "key", venv)
    with (venv / MODULE).open("a") as edited:
        edited.write("print('just looking')\n")

    second = bare(tmp_path / "second" / ".venv")
    assert not packages.restore(tmp_path, "key", second)
    assert not (second / MODULE).exists()

    (venv / MODULE).unlink()
    (venv / MODULE).write_text("WORD = 'tiny'\n")
    packages.keep(tmp_path, "key", venv)
    assert packages.restore(tmp_path, "key", second)
    assert (second / MODULE).read_text() == "WORD = 'tiny'\n"


def test_nothing_is_restored_of_another_lock_or_of_a_run_that_was_killed(venv: Path, tmp_path: Path) -> None:
    second = bare(tmp_path / "second" / ".venv")
    (tmp_path / "bundles" / packages.FOLDER / f"{PARTIAL}1" / "lib").mkdir(parents=True)

    assert not packages.restore(tmp_path, "key", second)
    packages.keep(tmp_path, "key", venv)
    assert not packages.restore(tmp_path, "other", second)
    kept = [path.name for path in (tmp_path / "bundles" / packages.FOLDER).iterdir()]
    assert kept == ["key"]


def test_the_key_is_that_of_the_lock() -> None:
    assert packages.key(b"lock") == packages.key(b"lock") != packages.key(b"another")
