"""The options of `hedgerow-agent train`, and one run of it."""

import argparse
import json
import signal
import sys
from pathlib import Path
from typing import Any

from hedgerow_agent.core.errors import CoreError
from hedgerow_agent.local.problems import EXIT_INTERRUPTED, EXIT_PROBLEM, Problem

DESCRIPTION = """\
Train one job on this machine, on its own data, inside a planned number of bytes. No cluster and no broker is needed.

JOB is a TrainingJob manifest, or a program file made by `hedgerow plan --out`. A manifest without --program is planned
here: for a class of the catalogue (--class), a class of your own (--class-file, or a DeviceClass in the same file), or
this machine with the memory that is free on it. Data is a .npz with x and y, a pair NAMEx.npy and NAMEy.npy, a .csv
with the label last, or a folder of such files. It stays where it is: only the samples of a batch are read.

The trained delta, its checkpoints and the program go into --out. The same command goes on where an interrupted one
stopped, with the same program. Another command (other epochs, another seed, changed data, ...) is another run: what
was in --out before is set aside in --out/earlier-1 (then earlier-2, ...), and nothing is ever deleted but a run's own
older checkpoints. At the end it prints accuracy before and after, planned and measured bytes, time and energy."""

EPILOG = """\
examples:
  hedgerow-agent train job.yaml --data camera.npz                         on this machine
  hedgerow-agent train job.yaml --data samples/ --class raspberry-pi-4    as if it were that board
  hedgerow-agent train job.yaml --data camera.npz --budget 2Mi            in two megabytes
  hedgerow-agent train program.json --data camera.npz --weights base.safetensors --learning-rate 0.02
  hedgerow-agent train job.yaml --data sensor.csv --stream --window 64    on lines as they are written

exit codes: 0 trained to the end, 1 something does not fit or cannot be read, 2 usage, 3 the loss became no number (a
checkpoint is kept), 130 interrupted"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add everything that the command takes."""
    parser.add_argument("job", type=Path, metavar="JOB", help="a TrainingJob manifest, or a program file")
    parser.add_argument("--data", type=Path, required=True, metavar="PATH", help="a file, or a folder of files")
    where = parser.add_argument_group("for which memory")
    where.add_argument("--class", dest="device_class", metavar="NAME", help="plan for a class of the catalogue")
    where.add_argument("--class-file", type=Path, metavar="FILE", help="plan for the DeviceClass in a file")
    where.add_argument("--budget", metavar="SIZE", help="bytes of the arena, such as 256Ki or 4Mi")
    where.add_argument("--program", type=Path, metavar="FILE", help="run this program instead of planning one")
    start = parser.add_argument_group("from which parameters")
    start.add_argument("--models", type=Path, metavar="FOLDER", help="where the job's weights are; beside the job")
    start.add_argument("--weights", type=Path, metavar="FILE", help="a safetensors file instead of the job's")
    start.add_argument("--from-scratch", action="store_true", help="first values from the seed, no weights")
    how = parser.add_argument_group("how (instead of what a manifest says; a program says none of it)")
    how.add_argument("--epochs", type=_at_least_one, metavar="N", help="passes over the data; 1 for a program")
    how.add_argument("--learning-rate", metavar="RATE", help="step size, such as 0.05; a program needs it")
    how.add_argument("--seed", type=_seed, metavar="N", help="fixes split, order and first values; 0 for a program")
    how.add_argument(
        "--augment",
        action="append",
        default=[],
        metavar="HOOK",
        help="change samples a little in training: shift:2, flip, noise:0.05; may be repeated, applied in order",
    )
    online = parser.add_argument_group("samples as they come")
    online.add_argument("--stream", action="store_true", help="learn from each line once, at one rate; skip bad ones")
    online.add_argument("--window", type=_at_least_one, metavar="N", help="readings in a sample; 1 if absent")
    online.add_argument("--hop", type=_at_least_one, metavar="N", help="readings between samples; the window if absent")
    online.add_argument("--idle-seconds", type=_seconds, default=0.0, metavar="S", help="wait so long for another line")
    result = parser.add_argument_group("what comes out")
    result.add_argument("--out", type=Path, metavar="FOLDER", help="hedgerow-train/NAME if absent")
    result.add_argument(
        "--fresh", action="store_true", help="plan and train anew; what --out holds is set aside, not deleted"
    )
    result.add_argument("-o", "--output", choices=("text", "json"), default="text", help="how to print it")


def _seed(text: str) -> int:
    value = int(text)
    if not 0 <= value < 2**31:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and {2**31 - 1}")
    return value


def _at_least_one(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text} is not 0 or more")
    return value


def run(options: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    on_interrupt(signal.default_int_handler)
    try:
        sys.stdout.write(_trained(options) + "\n")
    except Problem as problem:
        return _refused(str(problem), problem.exit_code)
    except KeyboardInterrupt:
        return _refused("Stopped before training began; nothing was lost.", EXIT_INTERRUPTED)
    except (OSError, CoreError) as error:  # nobody foresaw it; bugs are other exceptions and show where they are
        said = str(error).removesuffix(".")
        return _refused(f"Training ended: {said}. The checkpoints written until then are kept.", EXIT_PROBLEM)
    return 0


def _trained(options: argparse.Namespace) -> str:
    from hedgerow_agent.local import training  # noqa: PLC0415 - numpy comes with it, and one thread is set before

    return _printed(training.train(options), options.output)


def _refused(sentence: str, exit_code: int) -> int:
    sys.stderr.write(f"{sentence}\n")
    return exit_code


def _printed(outcome: Any, form: str) -> str:
    from hedgerow_agent.local import summary  # noqa: PLC0415 - as above

    return json.dumps(summary.as_document(outcome)) if form == "json" else summary.as_text(outcome)


def on_interrupt(handler: Any) -> None:
    """Have Ctrl-C and a polite kill handled by the same function."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)
