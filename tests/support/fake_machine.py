"""Fake machines: a PATH folder with tiny programs, an empty cache, and no way to anything real."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from support.signals import heeding_signals

REPOSITORY = Path(__file__).resolve().parents[2]

FAKE_GO = """
import pathlib, sys, time

here = pathlib.Path(__file__).parent
arguments = sys.argv[1:]
if arguments[0] == "env":
    print({"GOVERSION": "go1.99.0"}[arguments[1]])
    sys.exit()
with (here / "builds").open("a") as builds:
    builds.write(arguments[-1] + "\\n")
output = pathlib.Path(arguments[arguments.index("-o") + 1])
how = (here / "go-does").read_text()
if how == "stop half-way":
    output.write_text("#!/bin/sh\\n")
    print("half of it is written", flush=True)
    time.sleep(60)
if how == "work slowly":
    time.sleep(1.5)
if how.startswith("say "):
    print(how[4:])
    sys.exit(1)
if how == "write a megabyte":
    output.write_bytes(bytes(1_000_000))
answers = {"etcd": "etcd Version: 3.6.6", "mochi": "network address for TCP listener"}
output.write_text("#!/bin/sh\\necho '" + answers.get(output.name, "nothing") + "'\\n")
output.chmod(0o755)
"""


@dataclass
class Machine:
    """A machine whose PATH holds only what a test puts there."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return self.folder / "bin"

    @property
    def cache(self) -> Path:
        return Path(self.environ["HEDGEROW_CACHE"])

    @property
    def environ(self) -> dict[str, str]:
        base = {
            "PATH": str(self.path),
            "HOME": str(self.folder),
            "HEDGEROW_CACHE": str(self.folder / "cache"),
        }
        return {**base, **self.variables}

    def add(self, name: str, script: str, folder: Path | None = None) -> Path:
        """Put a shell script on PATH (or into another folder)."""
        return self._write((folder or self.path) / name, f"#!/bin/sh\n{script}\n")

    def add_python(self, name: str, source: str) -> Path:
        """Put a Python script on PATH."""
        return self._write(self.path / name, f"#!{sys.executable}\n{source}\n")

    def add_go(self, does: str = "build") -> None:
        """Put a Go on PATH that does as told and counts its builds."""
        self.add_python("go", FAKE_GO)
        self.go_does(does)

    def go_does(self, does: str) -> None:
        (self.path / "go-does").write_text(does)

    @property
    def builds(self) -> list[str]:
        counted = self.path / "builds"
        return counted.read_text().split() if counted.exists() else []

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, str(REPOSITORY / "hack" / "setup"), *arguments]

    def setup(self, *arguments: str, environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run hack/setup on this machine."""
        return subprocess.run(
            self.command(*arguments),
            env=environ or self.environ,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def start_setup(self, *arguments: str) -> subprocess.Popen[str]:
        """Start hack/setup on this machine and leave it running."""
        return subprocess.Popen(
            heeding_signals(self.command(*arguments)),
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def _write(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path


def processes_naming(text: str) -> list[int]:
    """Return the live processes whose command line has a text in it, this one excepted."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if text in command and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return found
