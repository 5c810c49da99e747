"""Which of several copies of a program is taken."""

from pathlib import Path

import pytest

from provision.problems import Problem
from provision.programs import PROGRAMS
from provision.sources import Candidate, Origin, choose

APISERVER = PROGRAMS["kube-apiserver"]


def named(version: str, fault: str | None = None) -> Candidate:
    return Candidate(Origin.NAMED, Path("/assets/kube-apiserver"), version, fault)


def on_path(version: str, fault: str | None = None) -> Candidate:
    return Candidate(Origin.PATH, Path("/usr/bin/kube-apiserver"), version, fault)


def cached(version: str, fault: str | None = None) -> Candidate:
    return Candidate(Origin.CACHE, Path("/cache/kube-apiserver"), version, fault, "built from Go modules")


@pytest.mark.parametrize(
    ("candidates", "taken"),
    [
        pytest.param([named("1.30.0"), on_path("1.34.0")], "/assets", id="named by the developer, even when old"),
        pytest.param([on_path("1.33.1"), cached("1.34.4")], "/usr/bin", id="on PATH and good, before the cache"),
        pytest.param([on_path("1.31.0"), cached("1.34.4")], "/cache", id="cached, because the one on PATH is old"),
        pytest.param([on_path("2.0.0"), cached("1.34.4")], "/cache", id="cached, because the one on PATH is new"),
        pytest.param([on_path("", "it does not run"), cached("1.34.4")], "/cache", id="cached, PATH's is broken"),
        pytest.param([on_path("1.20.0"), on_path("1.32.0")], "/usr/bin", id="the second on PATH"),
        pytest.param([cached("1.34.4", "it is short")], None, id="none, the cached one is broken"),
        pytest.param([], None, id="none, there is none"),
    ],
)
def test_the_first_good_copy_is_taken(candidates: list[Candidate], taken: str | None) -> None:
    binary = choose(APISERVER, candidates).binary

    assert (str(binary.path.parent) if binary else None) == taken


def test_later_copies_are_not_even_looked_at() -> None:
    looked_at = iter([on_path("1.34.0"), cached("1.34.4")])

    choose(APISERVER, looked_at)

    assert next(looked_at).origin is Origin.CACHE


def test_a_named_copy_that_does_not_run_is_a_problem_and_not_passed_over() -> None:
    with pytest.raises(Problem) as raised:
        choose(APISERVER, [named("", "it does not run"), cached("1.34.4")])

    assert str(raised.value) == (
        "KUBEBUILDER_ASSETS names /assets/kube-apiserver, but it does not run: correct or unset KUBEBUILDER_ASSETS."
    )


def test_what_is_passed_over_is_told_and_a_broken_cache_is_marked() -> None:
    choice = choose(APISERVER, [on_path("1.20.0"), cached("", "it is short")])

    assert choice.passed_over == (
        "/usr/bin/kube-apiserver is no good: its version 1.20.0 is older than 1.32.0",
        "/cache/kube-apiserver is no good: it is short",
    )
    assert choice.broken is not None
    assert choice.broken.path == Path("/cache/kube-apiserver")
