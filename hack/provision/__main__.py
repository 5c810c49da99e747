"""The command line behind `hack/setup`. A Problem is one sentence and exit code 1, never a traceback."""

import argparse
import datetime as dt
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from provision import cache, doctor, pythons
from provision.ensure import check_disk, ensure
from provision.problems import Problem, os_errors_as_problems
from provision.programs import PROGRAMS, SYSROOTS, USUAL
from provision.progress import say
from provision.sysroots import ensure_sysroot

REPOSITORY = Path(__file__).resolve().parents[2]
COOL_DOWN_DAYS = 7
"""The lock takes nothing younger, so that a bad release is noticed and withdrawn before it reaches us."""


def main(arguments: Sequence[str]) -> int:
    """Run one command and return the exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    options = _parser().parse_args(arguments)
    root = cache.cache_root(os.environ)
    try:
        with os_errors_as_problems(root):
            _perform(options, root)
    except Problem as problem:
        say(str(problem))
        return 1
    except KeyboardInterrupt:
        say("Interrupted: what is finished is kept, and the same command goes on from there.")
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hack/setup", description="Sets up a machine for development and tests.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("venv", help="make .venv from the lock")
    servers = commands.add_parser("servers", help="make sure of the real servers the tests use")
    servers.add_argument("names", nargs="*", metavar="name", help=f"some of: {', '.join(PROGRAMS)}")
    commands.add_parser("lock", help="resolve hack/requirements/dev.txt anew")
    commands.add_parser("doctor", help="say what is here, what is missing and what would be done")
    return parser


def _perform(options: argparse.Namespace, root: Path) -> None:
    if options.command == "venv":
        print(pythons.make_project_venv(REPOSITORY, root, os.environ))
    elif options.command == "lock":
        newest = dt.datetime.now(dt.UTC).date() - dt.timedelta(days=COOL_DOWN_DAYS)
        print(pythons.write_lock(REPOSITORY, root, os.environ, newest.isoformat()))
    elif options.command == "doctor":
        for line in doctor.examine(os.environ):
            print(line)
    else:
        check_disk(options.names or USUAL, os.environ)
        for name in options.names or USUAL:
            for binary in ensure([name]):
                print(f"{binary.name:<24} {binary.version:<22} {binary.source}: {binary.path}", flush=True)
        for name in () if options.names else SYSROOTS:
            print(f"{'libc ' + name:<47} {ensure_sysroot(name)}", flush=True)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
