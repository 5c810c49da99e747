"""Which of the copies of a program is taken, and why the others are not. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from provision.problems import Problem
from provision.programs import Program


class Origin(StrEnum):
    """Where a copy was found, in the order in which they are considered."""

    NAMED = "KUBEBUILDER_ASSETS"
    PATH = "PATH"
    CACHE = "cache"


@dataclass(frozen=True, slots=True)
class Binary:
    """A program that can be started."""

    name: str
    path: Path
    version: str
    source: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A copy that was found; `fault` says why it cannot be used (None: it runs and says its version)."""

    origin: Origin
    path: Path
    version: str
    fault: str | None = None
    detail: str = ""  # how a copy in the cache came to be

    @property
    def source(self) -> str:
        """Say where it came from."""
        return f"{self.origin} ({self.detail})" if self.detail else str(self.origin)


@dataclass(frozen=True, slots=True)
class Choice:
    """What was decided: the binary, if any, and one fragment per copy that was passed over."""

    binary: Binary | None
    passed_over: tuple[str, ...]
    broken: Candidate | None = None  # a copy in our own cache that has to be made again


def choose(program: Program, candidates: Iterable[Candidate]) -> Choice:
    """Take the first good candidate; one the developer named is taken whatever its version, and must run."""
    passed_over: list[str] = []
    broken: Candidate | None = None
    for candidate in candidates:
        objection = _objection(program, candidate)
        if objection is None:
            binary = Binary(program.name, candidate.path, candidate.version, candidate.source)
            return Choice(binary, tuple(passed_over), broken)
        if candidate.origin is Origin.NAMED:
            raise Problem(
                f"KUBEBUILDER_ASSETS names {candidate.path}, but {objection}: correct or unset KUBEBUILDER_ASSETS."
            )
        if candidate.origin is Origin.CACHE:
            broken = candidate
        passed_over.append(f"{candidate.path} is no good: {objection}")
    return Choice(None, tuple(passed_over), broken)


def _objection(program: Program, candidate: Candidate) -> str | None:
    if candidate.fault is not None:
        return candidate.fault
    if candidate.origin is Origin.PATH and program.accepted is not None:
        return program.accepted.objection(candidate.version)
    return None
