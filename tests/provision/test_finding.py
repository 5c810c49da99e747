"""Finding programs on fake machines: PATH folders with tiny scripts that print versions."""

from pathlib import Path

import pytest

from provision import cache
from provision.find import cache_folder, locate, locate_broker
from provision.problems import Problem
from provision.programs import PROGRAMS
from support.fake_machine import Machine


def put_into_cache(machine: Machine, name: str, script: str) -> Path:
    final = cache_folder(PROGRAMS[name], machine.environ)
    partial = cache.begin(final)
    machine.add(name, script, partial)
    cache.publish(partial, final, "9.9.9", "built for a test")
    return final / name


ANSWERS = {
    "etcd": ("echo 'etcd Version: 3.5.9'; echo 'Git SHA: x'", "3.5.9"),
    "kube-apiserver": ("echo 'Kubernetes v1.33.0'", "1.33.0"),
    "kubectl": (
        "echo 'Client Version: v1.32.4-dispatcher'; echo 'Kustomize Version: v5.5.0'",
        "1.32.4-dispatcher",
    ),
    "helm": ("echo 'v3.17.1+g980d8ac'", "3.17.1+g980d8ac"),
    "mosquitto": ("echo 'mosquitto version 2.0.11'; exit 3", "2.0.11"),
    "mosquitto_sub": ("echo 'mosquitto_sub version 2.0.20 running on libmosquitto 2.0.20.'", "2.0.20"),
    "mosquitto_passwd": (
        "echo 'mosquitto_passwd is a tool for managing password files'; exit 1",
        "unversioned",
    ),
    "prometheus": ("echo 'prometheus, version 2.42.0+ds (branch: debian/sid)' >&2", "2.42.0+ds"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_program_on_path_is_found_with_the_version_it_tells(machine: Machine, name: str) -> None:
    script, version = ANSWERS[name]
    path = machine.add(name, script)

    found = locate(name, machine.environ)

    assert (found.name, found.path, found.version, found.source) == (name, path, version, "PATH")


def test_an_old_one_on_path_gives_way_to_a_good_one_further_down(machine: Machine) -> None:
    machine.add("etcd", "echo 'etcd Version: 3.4.0'")
    other = machine.folder / "other"
    good = machine.add("etcd", "echo 'etcd Version: 3.6.0'", other)
    machine.variables["PATH"] = f"{machine.path}:{other}"

    assert locate("etcd", machine.environ).path == good


def test_the_folder_the_developer_names_comes_first_for_what_it_holds(machine: Machine) -> None:
    assets = machine.folder / "assets"
    named = machine.add("etcd", "echo 'etcd Version: 3.4.0'", assets)
    machine.add("etcd", "echo 'etcd Version: 3.6.0'")
    kubectl = machine.add("kubectl", "echo 'Client Version: v1.34.0'")
    machine.variables["KUBEBUILDER_ASSETS"] = str(assets)

    assert locate("etcd", machine.environ).path == named
    assert locate("etcd", machine.environ).source == "KUBEBUILDER_ASSETS"
    assert locate("kubectl", machine.environ).path == kubectl


def test_the_cache_serves_when_path_has_nothing_good(machine: Machine) -> None:
    machine.add("etcd", "echo 'etcd Version: 3.4.0'")
    path = put_into_cache(machine, "etcd", "echo 'etcd Version: 3.6.6'")

    found = locate("etcd", machine.environ)

    assert (found.path, found.version, found.source) == (path, "9.9.9", "cache (built for a test)")


def test_what_is_nowhere_is_a_sentence_with_the_command_that_gets_it(machine: Machine) -> None:
    machine.add("etcd", "echo 'etcd Version: 3.4.0'")

    with pytest.raises(Problem) as raised:
        locate("etcd", machine.environ)

    assert str(raised.value) == (
        f"There is no usable etcd on this machine ({machine.path / 'etcd'} is no good: its version 3.4.0 "
        "is older than 3.5.0): run `hack/setup servers etcd` to get it."
    )


def test_a_truncated_copy_in_the_cache_is_not_handed_out(machine: Machine) -> None:
    path = put_into_cache(machine, "etcd", "echo 'etcd Version: 3.6.6'")
    path.write_text("#!/bin/sh")

    with pytest.raises(Problem, match=r"has 9 bytes instead of \d+"):
        locate("etcd", machine.environ)


def test_an_unknown_name_is_answered_with_the_known_ones(machine: Machine) -> None:
    with pytest.raises(Problem, match=r"^'etdc' is none of the programs known here: etcd, kube-apiserver"):
        locate("etdc", machine.environ)


def test_the_go_broker_stands_in_for_mosquitto(machine: Machine) -> None:
    with pytest.raises(Problem, match="no usable mosquitto"):
        locate_broker(machine.environ)
    put_into_cache(machine, "mochi", "echo 'network address for TCP listener'")
    assert locate_broker(machine.environ).name == "mochi"
    machine.add("mosquitto", "echo 'mosquitto version 2.0.18'")
    assert locate_broker(machine.environ).name == "mosquitto"


@pytest.mark.parametrize(
    ("variables", "root"),
    [
        ({"HOME": "/home/ada"}, "/home/ada/.cache/hedgerow"),
        ({"HOME": "/home/ada", "XDG_CACHE_HOME": "/big"}, "/big/hedgerow"),
        ({"HOME": "/home/ada", "XDG_CACHE_HOME": "/big", "HEDGEROW_CACHE": "/mine"}, "/mine"),
    ],
)
def test_the_cache_is_where_the_environment_says(variables: dict[str, str], root: str) -> None:
    assert cache.cache_root(variables) == Path(root)
