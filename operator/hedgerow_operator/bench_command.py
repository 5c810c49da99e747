"""`hedgerow bench planners`: every strategy on every network at several budgets, one row each."""

import json
import multiprocessing
import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict

import click

from hedgerow_operator import classes as catalogue
from hedgerow_operator.mistakes import BadInput
from hedgerow_operator.papers import output_option
from hedgerow_operator.planning import solver
from hedgerow_operator.planning.bench import Case, Row, measure
from hedgerow_operator.planning.requests import device_costs
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.models import zoo
from hedgerow_plans.planning.strategies import STRATEGIES

PERCENTS = (90, 75, 50, 35)
_WIDTHS = (24, 6, 7, 11, 9, 12, 9, 9, 9)
_HEADINGS = ("NETWORK", "NODES", "BUDGET", "BYTES", "STRATEGY", "PEAK", "OVERHEAD", "SECONDS", "GAP")


@click.group()
def bench() -> None:
    """Measure what Hedgerow itself does."""


@bench.command()
@click.option("--model", "models", multiple=True, help="A network; repeat for more. All of the zoo take hours.")
@click.option("--budget-percent", "percents", multiple=True, type=click.IntRange(1, 100), help="Of keep-all; repeat.")
@click.option("--class", "class_name", default="raspberry-pi-4", show_default=True, help="Whose energy is saved.")
@click.option("--strategy", "strategies", multiple=True, type=click.Choice(solver.NAMES), help="Repeat for more.")
@click.option("--batch", "batch_size", default=8, show_default=True, type=click.IntRange(1, 65_536))
@click.option("--time-limit", "seconds", default=10.0, show_default=True, type=click.FloatRange(0, min_open=True))
@click.option("--jobs", type=click.IntRange(1), help="Processes; by default as many as there are cores.")
@output_option
def planners(  # noqa: PLR0917 - click passes one argument per option
    models: tuple[str, ...],
    percents: tuple[int, ...],
    class_name: str,
    strategies: tuple[str, ...],
    batch_size: int,
    seconds: float,
    jobs: int | None,
    output: str,
) -> None:
    """Plan networks at shares of their keep-all memory, never below the floor, with every strategy.

    Overhead is energy over a step that computes nothing twice; gap is energy over the most that is proven to be needed.
    """
    costs = device_costs(catalogue.device_class(class_name).spec)
    names = strategies or (*STRATEGIES, *(["optimal"] if solver.solver() else []))
    try:
        chosen = [zoo.entry(model).name for model in models or zoo.names()]
    except GraphError as problem:
        raise BadInput(str(problem)) from None
    cases = [
        Case(model, percent, batch_size, costs, tuple(names), seconds)
        for model in chosen
        for percent in percents or PERCENTS
    ]
    rows = _measured(cases, min(jobs or os.cpu_count() or 1, len(cases)))
    if output == "json":
        click.echo(json.dumps([asdict(row) for row in rows], indent=2))
        return
    click.echo(_line(_HEADINGS))
    for row in rows:
        click.echo(_line(_cells(row)))


def _measured(cases: list[Case], jobs: int) -> Iterator[Row]:
    if jobs < 2:
        yield from _told(map(measure, cases), len(cases))
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from _told(pool.map(measure, cases), len(cases))


def _told(results: Iterable[list[Row]], count: int) -> Iterator[Row]:
    """Yield the rows, and show on a terminal how far it is if the rows themselves go elsewhere."""
    for number, rows in enumerate(results, start=1):
        if sys.stderr.isatty() and not sys.stdout.isatty():
            click.echo(f"\r{number} of {count} cases   ", err=True, nl=number == count)
        yield from rows


def _cells(row: Row) -> tuple[str, ...]:
    none = row.peak_bytes is None
    return (
        row.model,
        str(row.nodes),
        f"{row.budget_percent}%",
        str(row.budget_bytes),
        row.strategy,
        "no plan" if none else str(row.peak_bytes),
        _percent(row.overhead),
        f"{row.seconds:.2f}",
        _percent(row.gap),
    )


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.3%}"


def _line(cells: tuple[str, ...]) -> str:
    return " ".join(cell.ljust(width) for cell, width in zip(cells, _WIDTHS, strict=True)).rstrip()
