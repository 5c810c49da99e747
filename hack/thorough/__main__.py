"""Run the checks one after the other, remember what passed, write the report."""

import argparse
import dataclasses
import datetime as dt
import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

from thorough.checks import CHECKS, Check
from thorough.outcome import Outcome, Surroundings, find_closing_line, find_figures, render

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT / "reports"


def read_git(*arguments: str) -> str:
    """Return what git says of this tree."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def identify_sources() -> str:
    """Return the commit, and a digest of what was changed since, so that results never outlive the sources."""
    commit = read_git("rev-parse", "--short=12", "HEAD").strip()
    changes = read_git("diff", "HEAD") + read_git("ls-files", "--others", "--exclude-standard")
    return commit if not changes else f"{commit}-changed-{hashlib.sha256(changes.encode()).hexdigest()[:8]}"


def run(check: Check, log: Path, position: str) -> Outcome:
    """Run one check with its output in a log, and a line for each ten seconds that pass."""
    command = [word.format(python=sys.executable) for word in check.command]
    started = time.monotonic()
    environment = {**os.environ, "HEDGEROW_THOROUGH": "1"}
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, env=environment)
        exit_code = wait(process, check, started, position)
    text = log.read_text(errors="replace")
    seconds = time.monotonic() - started
    closing_line = find_closing_line(text)
    return Outcome(
        check.name, check.shows, " ".join(check.command), exit_code, seconds, closing_line, find_figures(text)
    )


def wait(process: subprocess.Popen[bytes], check: Check, started: float, position: str) -> int:
    """Wait for a check to end, say that it is still running, and end it when it is over time."""
    while True:
        seconds = time.monotonic() - started
        try:
            return process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            sys.stderr.write(f"{position} {check.name}: {seconds:.0f} s\n")
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            raise
        if seconds > check.timeout_seconds:
            process.kill()
            return process.wait()


def load_passed(state: Path) -> dict[str, Outcome]:
    """Return what already passed on these sources."""
    if not state.exists():
        return {}
    rows = [Outcome(**{**row, "figures": tuple(map(tuple, row["figures"]))}) for row in json.loads(state.read_text())]
    return {outcome.name: outcome for outcome in rows if outcome.passed}


def save(state: Path, outcomes: dict[str, Outcome]) -> None:
    """Remember the outcomes so far, all or nothing."""
    unfinished = state.with_suffix(".part")
    unfinished.write_text(json.dumps([dataclasses.asdict(outcome) for outcome in outcomes.values()], indent=1))
    unfinished.replace(state)


def choose_checks() -> list[Check]:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="make thorough", description="Run every long list in full and write a report."
    )
    parser.add_argument("names", nargs="*", help="only these checks (default: all of them)")
    wanted = parser.parse_args().names
    unknown = sorted(set(wanted) - {check.name for check in CHECKS})
    if unknown:
        parser.error(f"there is no check called {unknown[0]}; there are: {', '.join(check.name for check in CHECKS)}")
    return [check for check in CHECKS if not wanted or check.name in wanted]


def run_all(checks: list[Check], folder: Path) -> list[Outcome]:
    """Run what has not passed yet on these sources."""
    outcomes = load_passed(folder / "state.json")
    for number, check in enumerate(checks, start=1):
        position = f"[{number}/{len(checks)}]"
        if check.name in outcomes:
            sys.stderr.write(f"{position} {check.name}: passed before on these sources\n")
            continue
        sys.stderr.write(f"{position} {check.name}: {check.shows}\n")
        outcomes[check.name] = run(check, folder / f"{check.name}.log", position)
        sys.stderr.write(f"{position} {check.name}: {outcomes[check.name].closing_line}\n")
        save(folder / "state.json", outcomes)
    return list(outcomes.values())


def main() -> int:
    """Run the checks and write the report; exit 1 when one failed."""
    checks, sources = choose_checks(), identify_sources()
    folder = REPORTS / sources
    folder.mkdir(parents=True, exist_ok=True)
    outcomes = run_all(checks, folder)
    today = dt.datetime.now(dt.UTC).date().isoformat()
    machine = f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()} {platform.release()}"
    report = REPORTS / f"{today}-{sources}.md"
    report.write_text(render(Surroundings(today, sources, machine, platform.python_version()), outcomes))
    sys.stderr.write(f"The report is in {report.relative_to(ROOT)}.\n")
    return 0 if all(outcome.passed for outcome in outcomes) else 1


if __name__ == "__main__":
    raise SystemExit(main())
