"""`hedgerow tables`: figures that papers print, beside ours by the same rule on our own graphs."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict

import click

from hedgerow_operator.tables import table
from hedgerow_plans.accounting import comparison
from hedgerow_plans.accounting.comparison import Comparison
from hedgerow_plans.accounting.poet.comparison import poet
from hedgerow_plans.extras import explain_missing_extra

_PAPERS: Mapping[str, Callable[[], tuple[Comparison, ...]]] = {
    "tinytl": comparison.tinytl,
    "tte": comparison.tte,
    "poet": poet,
}

output_option = click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="How to print."
)


@click.command()
@click.argument("what", type=click.Choice([*_PAPERS, "flip"]))
@output_option
def tables(what: str, output: str) -> None:
    """Print a paper's figures beside ours, counted as its authors do.

    `flip` plans POET's graphs on its three chips: the same graph and budget are recomputed on one and paged on another.
    """
    if what == "flip":
        click.echo(_flip(as_json=output == "json"))
        return
    rows = _PAPERS[what]()
    click.echo(json.dumps([asdict(row) for row in rows], indent=2) if output == "json" else _text(rows))


def _flip(*, as_json: bool) -> str:
    try:
        from hedgerow_operator.planning import flip  # noqa: PLC0415 - it needs the solver
    except ModuleNotFoundError as missing:
        raise click.ClickException(
            explain_missing_extra("hedgerow tables flip", "planner", missing.name or "")
        ) from None
    found = list(flip.policies())
    if as_json:
        return json.dumps([asdict(row) | {"policy": row.word} for row in found], indent=2)
    rows = [
        [
            *(row.network, str(row.budget_bytes), row.chip, row.word),
            *(str(row.recomputations), f"{row.recomputing_joules:.6f}", str(row.page_ins), f"{row.paging_joules:.6f}"),
            *(f"{row.joules:.6f}", f"{row.gap:.4%}"),
        ]
        for row in found
    ]
    headings = ["NETWORK", "BUDGET", "CHIP", "POLICY", "RECOMPUTED", "JOULES", "PAGED IN", "JOULES", "STEP", "GAP"]
    return table(headings, rows)


def _text(rows: tuple[Comparison, ...]) -> str:
    cells = [[row.name, _number(row.published), f"{row.ours:.6f}", row.unit, _difference(row)] for row in rows]
    sources = dict.fromkeys(row.source for row in rows)
    text = table(["FIGURE", "PUBLISHED", "OURS", "UNIT", "DIFFERENCE"], cells)
    return "\n".join([text, "", *(f"Published: {source}." for source in sources)])


def _number(value: float) -> str:
    if value == int(value):
        return f"{value:.0f}"
    return f"{value:g}" if value == round(value, 1) else f"{value:.6f}"


def _difference(row: Comparison) -> str:
    return f"{row.ours - row.published:+.6f}"
