"""`hedgerow tables`: figures that papers print, beside ours by the same rule on our own graphs."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict

import click

from hedgerow_operator.tables import table
from hedgerow_plans.accounting import comparison
from hedgerow_plans.accounting.comparison import Comparison

_PAPERS: Mapping[str, Callable[[], tuple[Comparison, ...]]] = {"tinytl": comparison.tinytl, "tte": comparison.tte}

output_option = click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="How to print."
)


@click.command()
@click.argument("paper", type=click.Choice(list(_PAPERS)))
@output_option
def tables(paper: str, output: str) -> None:
    """Print a paper's memory figures beside ours, counted as its authors do."""
    rows = _PAPERS[paper]()
    click.echo(json.dumps([asdict(row) for row in rows], indent=2) if output == "json" else _text(rows))


def _text(rows: tuple[Comparison, ...]) -> str:
    cells = [[row.name, _number(row.published), f"{row.ours:.6f}", row.unit, _difference(row)] for row in rows]
    sources = dict.fromkeys(row.source for row in rows)
    text = table(["FIGURE", "PUBLISHED", "OURS", "UNIT", "DIFFERENCE"], cells)
    return "\n".join([text, "", *(f"Published: {source}." for source in sources)])


def _number(value: float) -> str:
    return f"{value:g}" if value == round(value, 1) else f"{value:.6f}"


def _difference(row: Comparison) -> str:
    return f"{row.ours - row.published:+.6f}"
