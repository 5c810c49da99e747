"""`hedgerow layout`: offsets for tensors with lifetimes, with a bound below which none exist."""

import json
import time
from pathlib import Path

import click

from hedgerow_operator.mistakes import BadInput
from hedgerow_operator.tables import table
from hedgerow_plans.planning.layout import Effort, Layout, lay_out
from hedgerow_plans.planning.layout_problem import MOST_BYTES, parse_tensors
from hedgerow_plans.untrusted import Untrustworthy

_EFFORT = Effort(visits=100_000_000, columns=1_000_000_000)
"""Far more than a time limit allows: at the terminal it is the time that counts."""


def read_within(file: Path, most_bytes: int) -> bytes:
    """Return a file's content, or end with a sentence: one that is too large is refused before it is read."""
    try:
        size_bytes = file.stat().st_size
        if size_bytes > most_bytes:
            raise BadInput(f"{file} has {size_bytes} bytes; at most {most_bytes} are accepted.")
        with file.open("rb") as opened:
            content = opened.read(most_bytes + 1)  # what is no plain file may have any length
    except OSError as problem:
        raise BadInput(f"{file} cannot be read: {problem.strerror}.") from problem
    if len(content) > most_bytes:
        raise BadInput(f"{file} has more than {most_bytes} bytes, which is the most that is accepted.")
    return content


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("--time-limit", "limit_seconds", default=10.0, show_default=True, type=click.FloatRange(0.0))
def layout(file: Path, output: str, limit_seconds: float) -> None:
    """Place the tensors of FILE in as few bytes as possible.

    FILE holds {"schema": "hedgerow.dev/layout-problem/v1", "tensors": [{"name", "bytes", "start", "end"}, ...]}; a
    tensor lives from its start until before its end.
    """
    try:
        tensors = parse_tensors(read_within(file, MOST_BYTES), str(file))
    except Untrustworthy as problem:
        raise BadInput(str(problem)) from None
    deadline = time.monotonic() + limit_seconds
    found = lay_out(tensors, lambda: time.monotonic() < deadline, _EFFORT)
    click.echo(_as_json(found) if output == "json" else _as_table(found))


def _as_json(found: Layout) -> str:
    return json.dumps({"top": found.top, "bound": found.bound, "offsets": found.offsets})


def _as_table(found: Layout) -> str:
    gap = (found.top - found.proven) / found.proven if found.proven else 0.0
    verdict = "nothing lower exists" if found.optimal else f"nothing below {found.proven} exists, gap {gap:.2%}"
    rows = [[str(number), str(offset)] for number, offset in enumerate(found.offsets)]
    return f"{table(['TENSOR', 'OFFSET'], rows)}\ntop {found.top}, live at once {found.bound}; {verdict}"
