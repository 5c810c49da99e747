"""Command-line programs that are run to their end, with one environment: kubectl and helm."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from servers.problems import ServerProblem

Completed: TypeAlias = "subprocess.CompletedProcess[str]"


@dataclass(frozen=True, slots=True)
class Command:
    """A program with the environment it is always run in; call it with its arguments."""

    path: Path
    environment: Mapping[str, str]

    def __call__(
        self,
        *arguments: str | Path,
        input: str | None = None,  # noqa: A002 - as subprocess calls it
        check: bool = True,
        timeout_seconds: float = 120.0,
    ) -> Completed:
        """Run it to its end; unless `check` is false, a failure is a problem with what it wrote to stderr."""
        words = [str(argument) for argument in arguments]
        command = " ".join([self.path.name, *words])
        try:
            completed = subprocess.run(
                [str(self.path), *words],
                input="" if input is None else input,
                capture_output=True,
                text=True,
                env=dict(self.environment),
                timeout=timeout_seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ServerProblem(f"`{command}` had not ended after {timeout_seconds:g} s and was killed.") from error
        if check and completed.returncode != 0:
            said = (completed.stderr or completed.stdout).strip()
            raise ServerProblem(f"`{command}` failed with status {completed.returncode}: {said}")
        return completed
