"""Play the story, print how it ended, and fail if it did not end well."""

import argparse
import os
import shutil
import sys
import time
from pathlib import Path

from rich.console import Console

from demo.cast import DEVICES
from demo.closing import draw_memory, print_table
from demo.live import show
from demo.stage import ROOT, raise_curtain
from demo.story import Story
from demo.verdict import judge
from provision.cache import cache_root
from provision.problems import Problem
from sampledata.prepare import prepare

OUTPUT = ROOT / "demo-output"


def main() -> int:
    """Run the demo; exit 0 only if everything it tells was true."""
    parser = argparse.ArgumentParser(
        prog="make demo", description="The whole product on this machine, in a few minutes."
    )
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder for logs and the picture")
    output = parser.parse_args().output.resolve()
    console = Console(width=None if sys.stdout.isatty() else 160)
    try:
        return play(console, output)
    except Problem as problem:
        console.print(f"The demo stopped: {problem}\nLogs are in {output}.", soft_wrap=True)
    except KeyboardInterrupt:
        console.print("Interrupted; everything that was started is stopped.")
    return 1


def play(console: Console, output: Path) -> int:
    """Play all acts on a fresh stage."""
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    started = time.monotonic()
    drifts = {role.name: role.drift for role in DEVICES}
    data = prepare(cache_root(os.environ) / "sampledata", drifts, console.print)
    with raise_curtain(output, data, DEVICES, say=console.print) as stage, show(console) as shown:
        story = Story(stage, data, shown)
        story.register()
        story.train()
        devices = story.endings()
        rollback = story.roll_back()
    print_table(console, data.base.accuracy, devices)
    draw_memory(output / "memory.png", {role.name: story.timelines[role.name] for role in DEVICES})
    console.print(f"The picture is in {output / 'memory.png'}, the logs beside it.", soft_wrap=True)
    wrong = judge(data.base.accuracy, devices, rollback)
    for sentence in wrong:
        console.print(f"[red]{sentence}[/red]", soft_wrap=True)
    changed = f"{rollback.changed_by_training} of {len(rollback.predictions_before_training)}"
    console.print(f"Rollback of {rollback.device}: {rollback.result}; training had changed {changed} predictions.")
    console.print(f"FIGURE demo without set-up: {time.monotonic() - started:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
