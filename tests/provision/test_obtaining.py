"""Obtaining programs: built once, shared by simultaneous runs, whole after interruptions, mended."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from provision import golang
from provision.find import cache_folder, locate
from provision.problems import Problem
from provision.programs import BUNDLES, PROGRAMS, GoBundle
from support.fake_machine import Machine, processes_naming


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in 20 s"
        time.sleep(0.05)


def partials(machine: Machine) -> list[Path]:
    return list((machine.cache / "bundles").rglob(".partial-*"))


def half_written(machine: Machine) -> bool:
    return any((partial / "etcd").exists() for partial in partials(machine))


def etcd_in_cache(machine: Machine) -> Path:
    return cache_folder(PROGRAMS["etcd"], machine.environ) / "etcd"


def test_what_is_missing_is_built_once_and_told_in_one_line(machine: Machine) -> None:
    machine.add_go()

    first = machine.setup("servers", "etcd")
    second = machine.setup("servers", "etcd")

    assert first.returncode == 0, first.stderr
    assert first.stdout.split(maxsplit=2)[:2] == ["etcd", "3.6.6"]
    assert f"cache (built from Go modules): {etcd_in_cache(machine)}" in first.stdout
    assert "build etcd 3.6.6: done after" in first.stderr
    assert (second.stdout, second.stderr) == (first.stdout, "")
    assert machine.builds == ["go.etcd.io/etcd/server/v3"]


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        pytest.param(lambda path: path.write_bytes(b""), "has 0 bytes instead of", id="truncated"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes().swapcase()), "has been altered", id="altered"),
        pytest.param(lambda path: path.chmod(0o644), "does not run", id="not executable"),
        pytest.param(lambda path: (path.parent / "manifest.json").write_text("{"), "cannot be read", id="manifest"),
    ],
)
def test_a_broken_cache_is_named_and_mended(machine: Machine, damage: Callable[[Path], object], named: str) -> None:
    machine.add_go()
    machine.setup("servers", "etcd")
    damage(etcd_in_cache(machine))

    mended = machine.setup("servers", "etcd")

    assert mended.returncode == 0, mended.stderr
    assert named in mended.stderr
    assert "etcd: the copy in the cache is broken and is made again" in mended.stderr
    assert len(machine.builds) == 2
    assert machine.setup("servers", "etcd").stderr == ""


def test_a_build_killed_half_way_leaves_nothing_under_the_final_name(machine: Machine) -> None:
    machine.add_go("stop half-way")
    killed = machine.start_setup("servers", "etcd")
    wait_until(lambda: half_written(machine))
    killed.kill()
    killed.communicate()

    assert not etcd_in_cache(machine).parent.exists()
    with pytest.raises(Problem, match="no usable etcd"):
        locate("etcd", machine.environ)
    wait_until(lambda: not processes_naming(str(machine.path / "go")))

    machine.go_does("build")
    rerun = machine.setup("servers", "etcd")
    assert rerun.returncode == 0, rerun.stderr
    assert partials(machine) == []
    assert locate("etcd", machine.environ).path == etcd_in_cache(machine)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_children_and_says_that_it_goes_on_later(
    machine: Machine, number: signal.Signals
) -> None:
    machine.add_go("stop half-way")
    interrupted = machine.start_setup("servers", "etcd")
    wait_until(lambda: half_written(machine))
    os.kill(interrupted.pid, number)
    _, said = interrupted.communicate(timeout=20)

    assert interrupted.returncode == 130
    assert said.endswith("Interrupted: what is finished is kept, and the same command goes on from there.\n")
    assert "Traceback" not in said
    assert processes_naming(str(machine.path / "go")) == []
    assert not etcd_in_cache(machine).parent.exists()


def test_two_runs_at_the_same_time_share_one_build(machine: Machine) -> None:
    machine.add_go("work slowly")
    first = machine.start_setup("servers", "etcd")
    wait_until(lambda: machine.builds != [])
    second = machine.start_setup("servers", "etcd")
    told_first, told_second = first.communicate(timeout=60), second.communicate(timeout=60)

    assert (first.returncode, second.returncode) == (0, 0), (told_first, told_second)
    assert f"etcd: waits for process {first.pid}, which is at it already" in told_second[1]
    assert len(machine.builds) == 1
    assert told_first[0] == told_second[0]


def test_a_changed_pin_is_another_cache_entry(tmp_path: Path) -> None:
    bundle = BUNDLES["etcd"]
    assert isinstance(bundle, GoBundle)
    module = tmp_path / bundle.module
    module.mkdir()
    keys = set()
    for go_mod, go_sum in (("go 1.24\n", "a"), ("go 1.25\n", "a"), ("go 1.24\n", "b")):
        (module / "go.mod").write_text(go_mod)
        (module / "go.sum").write_text(go_sum)
        keys.add(golang.key(bundle, tmp_path))

    assert len(keys) == 3


def test_the_doctor_tells_what_is_here_and_what_would_be_done_and_does_nothing(machine: Machine) -> None:
    machine.add_go()
    machine.add("kubectl", "echo 'Client Version: v1.33.1'")
    machine.add("helm", "echo 'v2.16.0'")

    told = machine.setup("doctor")

    assert told.returncode == 0, told.stderr
    lines = {line.split()[0]: line for line in told.stdout.splitlines()}
    assert "1.99.0 at" in lines["Go"]
    assert "missing: would be built from Go modules (3.6.6)" in lines["etcd"]
    assert f"1.33.1  {machine.path / 'kubectl'}  from PATH" in lines["kubectl"]
    assert "its version 2.16.0 is older than 3.14.0" in lines["helm"]
    assert machine.builds == []
    assert not machine.cache.exists()
