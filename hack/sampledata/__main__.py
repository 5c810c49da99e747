"""`python -m sampledata FOLDER`: write the base model and a drifted dataset of each kind."""

import argparse
import sys
from pathlib import Path

from sampledata.drift import DRIFTS
from sampledata.prepare import prepare


def main() -> int:
    """Prepare the data and say where it is and what the base model is worth."""
    parser = argparse.ArgumentParser(
        prog="python -m sampledata",
        description="Write npz files of real handwritten digits (clean, rotated, inverted, fogged) and a base model "
        "trained on other, clean ones. Name the files in an agent's [datasets] and [models].",
    )
    parser.add_argument("folder", type=Path, help="where to write; what is there already is not made again")
    prepared = prepare(
        parser.parse_args().folder, {name: name for name in DRIFTS}, lambda text: print(text, file=sys.stderr)
    )
    print(f"{prepared.base.file}: sha256 {prepared.base.sha256}, accuracy {prepared.base.accuracy:.3f} on clean images")
    for name, file in prepared.datasets.items():
        print(f"{file}: {name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
