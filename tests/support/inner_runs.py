"""Runs of pytest inside a test: what they do to each other, and what they leave behind."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

from support.signals import heeding_signals

TESTS = Path(__file__).resolve().parent.parent
HACK = TESTS.parent / "hack"


class InnerRun:
    """A pytest run of one small test file, in a folder of its own that marks every process it starts."""

    def __init__(self, folder: Path, test_file_text: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
        (folder / "test_inner.py").write_text(test_file_text)
        self._output = (folder / "output.txt").open("w+")
        self.process = subprocess.Popen(
            heeding_signals(
                [
                    *(sys.executable, "-m", "pytest", "-q", "-p", "support.server_fixtures", "-p", "no:cacheprovider"),
                    *(f"--rootdir={folder}", f"--basetemp={folder / 'temporary'}", "test_inner.py"),
                ]
            ),
            cwd=folder,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (TESTS, HACK)))},
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
        )

    def output(self) -> str:
        return (self.folder / "output.txt").read_text()

    def wait_for(self, file_name: str, timeout_seconds: float = 90.0) -> None:
        """Wait until the inner test has written this file, which says how far it is."""
        deadline = time.monotonic() + timeout_seconds
        while not (self.folder / file_name).exists():
            assert self.process.poll() is None, f"the inner run ended too early:\n{self.output()}"
            assert time.monotonic() < deadline, f"the inner run is too slow:\n{self.output()}"
            time.sleep(0.05)

    def wait(self, timeout_seconds: float = 90.0) -> int:
        """Wait for its end and give its exit status."""
        return self.process.wait(timeout_seconds)

    def close(self) -> None:
        """End it, if a failing test left it running."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._output.close()

    def servers(self) -> dict[int, str]:
        """Every process that carries this run's folder in its command line, except the run itself."""
        found: dict[int, str] = {}
        for process in psutil.process_iter(["cmdline"]):
            command = " ".join(process.info["cmdline"] or ())
            if f"{self.folder}/temporary/" in command and process.pid != self.process.pid:
                found[process.pid] = command
        return found
