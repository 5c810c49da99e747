"""Programs from Debian: installed, unpacked without root, or replaced by the Go broker."""

import os
from pathlib import Path

import pytest

from provision import debian
from provision.debian import Way, way
from provision.ensure import ensure
from provision.problems import Problem
from support.fake_machine import Machine

FAKE_APT = """
import pathlib, sys
here = pathlib.Path(__file__).parent
with (here / "apt-calls").open("a") as calls:
    calls.write(" ".join(word for word in sys.argv[1:] if not word.startswith(("-", "D"))) + "\\n")
policy = here / "policy-rc.d"
if policy.exists() and "--download-only" not in sys.argv:
    (here / "policy-seen").write_text(policy.read_text())
told = (here / "apt-does").read_text()
if told != "work":
    print(told)
    sys.exit(100)
archives = [a.split("=", 1)[1] for a in sys.argv if a.startswith("Dir::Cache::archives=")]
if archives and "install" in sys.argv:
    (pathlib.Path(archives[0]) / "mosquitto_2.0.11-1_amd64.deb").write_text("")
if not archives and "install" in sys.argv and "--download-only" not in sys.argv:
    for name in ("mosquitto", "mosquitto_pub"):
        (here / name).write_text("#!/bin/sh\\necho '" + name + " version 2.0.11'\\n")
        (here / name).chmod(0o755)
"""
FAKE_DPKG_DEB = """
import pathlib, sys
root = pathlib.Path(sys.argv[3])
(root / "usr/lib/here").mkdir(parents=True)
(root / "usr/lib/here/libmosquitto.so.1").write_text("")
(root / "usr/bin").mkdir()
for name in ("mosquitto", "mosquitto_pub", "mosquitto_sub", "mosquitto_passwd"):
    program = root / "usr/bin" / name
    program.write_text('#!/bin/sh\\necho "' + name + ' version 2.0.11 with $LD_LIBRARY_PATH"\\n')
    program.chmod(0o755)
"""


@pytest.mark.parametrize(
    ("has_apt", "is_root", "sudo_works", "prefers_unpacking", "expected"),
    [
        (True, True, False, False, Way.ROOT),
        (True, False, True, False, Way.SUDO),
        (True, False, False, False, Way.UNPACK),
        (True, True, False, True, Way.UNPACK),
        (False, True, True, False, Way.NONE),
    ],
)
def test_the_way_to_debian_packages(
    has_apt: bool, is_root: bool, sudo_works: bool, prefers_unpacking: bool, expected: Way
) -> None:
    assert way(has_apt, is_root, sudo_works, prefers_unpacking) is expected


@pytest.fixture
def debian_machine(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(debian, "POLICY", machine.path / "policy-rc.d")
    machine.add_python("apt-get", FAKE_APT)
    machine.add_python("dpkg-deb", FAKE_DPKG_DEB)
    machine.add("sudo", "echo 'sudo: a password is required' >&2; exit 1")
    (machine.path / "apt-does").write_text("work")
    for tool in ("sh", "env", "rm", "chmod", "readlink", "dirname"):
        real = next(Path(folder) / tool for folder in ("/usr/bin", "/bin") if (Path(folder) / tool).exists())
        (machine.path / tool).symlink_to(real)
    return machine


def calls(machine: Machine) -> list[str]:
    return (machine.path / "apt-calls").read_text().splitlines()


def test_without_sudo_the_packages_are_unpacked_into_the_cache(
    debian_machine: Machine, capfd: pytest.CaptureFixture[str]
) -> None:
    [found] = ensure(["mosquitto"], debian_machine.environ)

    assert found.source == "cache (unpacked from Debian packages)"
    assert found.version == "2.0.11-1"
    assert found.path.is_relative_to(debian_machine.cache)
    said = capfd.readouterr().err
    assert "unpacked without root (this user is not root and `sudo -n` is refused" in said


def test_an_unpacked_program_runs_with_its_libraries_and_keeps_the_callers(debian_machine: Machine) -> None:
    [found] = ensure(["mosquitto"], debian_machine.environ)
    script = found.path.read_text()

    assert 'LD_LIBRARY_PATH="$root/usr/lib/here${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"' in script
    assert script.rstrip().endswith('exec "$root/usr/bin/mosquitto" "$@"')


def test_a_sudo_that_asks_nothing_is_used_and_no_service_starts(debian_machine: Machine) -> None:
    debian_machine.add("sudo", 'shift; exec "$@"')

    [found] = ensure(["mosquitto"], debian_machine.environ)

    assert (found.path, found.source) == (debian_machine.path / "mosquitto", "PATH")
    assert "exit 101" in (debian_machine.path / "policy-seen").read_text()
    assert not (debian_machine.path / "policy-rc.d").exists()
    assert calls(debian_machine)[-1] == "install mosquitto mosquitto-clients"


def test_a_policy_the_machine_already_has_is_left_alone(debian_machine: Machine) -> None:
    debian_machine.add("sudo", 'shift; exec "$@"')
    policy = debian_machine.add("policy-rc.d", "exit 101 # ours")

    ensure(["mosquitto"], debian_machine.environ)

    assert policy.read_text() == "#!/bin/sh\nexit 101 # ours\n"


def test_the_go_broker_takes_the_place_of_a_mosquitto_that_cannot_be_had(
    debian_machine: Machine, capfd: pytest.CaptureFixture[str]
) -> None:
    debian_machine.add_go()
    (debian_machine.path / "apt-get").unlink()

    found = ensure(["mosquitto", "mosquitto_pub"], debian_machine.environ)

    assert [binary.name for binary in found] == ["mochi"]
    assert "The Go broker mochi takes its place." in capfd.readouterr().err


def test_no_apt_is_a_sentence_where_nothing_can_stand_in(debian_machine: Machine) -> None:
    (debian_machine.path / "apt-get").unlink()

    with pytest.raises(Problem) as raised:
        ensure(["prometheus"], debian_machine.environ)

    assert str(raised.value) == (
        "prometheus cannot be had here, because there is no apt-get to get it with: "
        "install prometheus yourself so that it is on PATH."
    )


def test_no_sudo_and_no_unpacking_is_a_sentence(debian_machine: Machine) -> None:
    (debian_machine.path / "apt-does").write_text("E: Unable to locate package prometheus")

    with pytest.raises(Problem) as raised:
        ensure(["prometheus"], debian_machine.environ)

    log = debian_machine.cache / "logs" / "prometheus.log"
    assert str(raised.value) == (
        "prometheus can neither be installed (this user is not root and `sudo -n` is refused) nor unpacked "
        f"(see {log}): have root run `apt-get install prometheus`."
    )


def test_no_network_is_a_sentence_and_no_other_way_is_tried(debian_machine: Machine) -> None:
    debian_machine.add_go()
    (debian_machine.path / "apt-does").write_text("E: Failed to fetch x  Could not resolve 'mirror.example'")

    with pytest.raises(Problem, match=r"cannot reach the Debian mirror \(.*mirror.example") as raised:
        ensure(["mosquitto"], debian_machine.environ)

    assert str(raised.value).endswith("and run the same command again.")
    assert debian_machine.builds == []
