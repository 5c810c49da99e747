"""`hedgerow models`: what the zoo has and what training it takes, and one model in detail or as a picture."""

import json
from pathlib import Path

import click

from hedgerow_operator import pictures
from hedgerow_operator.method_words import HELP, parse_method
from hedgerow_operator.papers import output_option
from hedgerow_operator.planning.requests import device_costs
from hedgerow_operator.tables import read_device_class, table
from hedgerow_plans.accounting.cost import step_cost
from hedgerow_plans.accounting.memory import account
from hedgerow_plans.accounting.summary import BATCH_SIZE, ModelSummary, summarise
from hedgerow_plans.graph import text as graph_text
from hedgerow_plans.graph.codec import graph_digest
from hedgerow_plans.graph.drawing import draw
from hedgerow_plans.graph.errors import GraphError
from hedgerow_plans.graph.ir import Graph
from hedgerow_plans.models import zoo
from hedgerow_plans.resources.columns import format_energy
from hedgerow_plans.resources.quantities import format_bytes
from hedgerow_plans.training.graphs import differentiate
from hedgerow_plans.training.optimizers import Sgd

_METHODS = {
    word: parse_method(word)
    for word in ("full", "last", "bias", "norm-last", "lora:4", "adapter:8", "lite-residual", "sparse:12")
}
"""What the list shows training bytes for; the first trains everything."""


@click.group(invoke_without_command=True)
@output_option
@click.option("--only", multiple=True, metavar="NAME", help="List this model; repeat for more. All take a while.")
@click.pass_context
def models(context: click.Context, output: str, only: tuple[str, ...]) -> None:
    """List the models of the zoo: size, and exact bytes of training with a batch of 8, by method."""
    if context.invoked_subcommand is not None:
        return
    try:
        rows = [summarise(name, _METHODS) for name in only or zoo.names()]
    except GraphError as problem:
        raise click.ClickException(str(problem)) from problem
    click.echo(json.dumps([_record(row) for row in rows], indent=2) if output == "json" else _list(rows))


@models.command()
@click.argument("name")
@click.option("--method", default="full", show_default=True, help=f"{HELP}.")
@click.option("--batch", "batch_size", default=BATCH_SIZE, show_default=True, type=click.IntRange(1, 65_536))
@click.option("--class-file", type=click.Path(path_type=Path), help="A DeviceClass manifest, for time and energy.")
@click.option("--nodes", is_flag=True, help="Print the forward graph, one line per node.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the forward graph into NAME.svg or NAME.png.")
def show(  # noqa: PLR0917 - click passes one argument per option
    name: str, method: str, batch_size: int, class_file: Path | None, nodes: bool, plot: Path | None
) -> None:
    """Show one model: its digest, its memory while it trains, and what a step costs on a class of devices."""
    try:
        forward = parse_method(method).apply(zoo.build(name)).graph
        training = differentiate(forward, Sgd(), batch_size, zoo.entry(name).loss).direct
    except GraphError as problem:
        raise click.ClickException(str(problem)) from problem
    lines = [*_size_lines(name, forward), *_memory_lines(training, batch_size)]
    if class_file is not None:
        lines.append(_cost_line(training, class_file, batch_size))
    click.echo(table(["", ""], lines).lstrip("\n"))
    if nodes:
        click.echo(graph_text.render(forward), nl=False)
    if plot is not None:
        pictures.write(draw(forward), plot)
        click.echo(f"Wrote the picture to {plot}.")


def _size_lines(name: str, forward: Graph) -> list[list[str]]:
    size = zoo.published_size(name)
    return [
        ["model", name],
        ["graph", f"{len(forward.nodes)} nodes, sha256 {graph_digest(forward)}"],
        ["parameters", f"{size.parameters:,}"],
        ["multiply-accumulates", f"{size.macs:,} per sample"],
    ]


def _memory_lines(training: Graph, batch_size: int) -> list[list[str]]:
    found = account(training, batch_size)
    figures = [
        ("trained parameters", found.trainable_bytes),
        ("frozen parameters", found.frozen_bytes),
        ("optimiser state", found.state_bytes),
        ("saved for backward", found.saved_bytes),
        ("largest scratch", found.scratch_bytes),
        ("least working set", found.working_set_bytes),
        ("keep-all peak", found.keep_all_peak_bytes),
    ]
    return [[label, f"{value:,} bytes ({format_bytes(value)})"] for label, value in figures]


def _cost_line(training: Graph, class_file: Path, batch_size: int) -> list[str]:
    device_class = read_device_class(class_file, None)
    cost = step_cost(training, device_costs(device_class.spec), batch_size)
    energy = format_energy(cost.picojoules // 1_000_000)
    return [f"step on {device_class.metadata.name}", f"{cost.flops:,} flop, {cost.nanoseconds / 1e6:.2f} ms, {energy}"]


def _record(row: ModelSummary) -> dict[str, object]:
    return {
        "name": row.name,
        "parameters": row.parameters,
        "macs": row.macs,
        "batchSize": BATCH_SIZE,
        "activationBytes": row.activation_bytes,
        "trainingBytes": dict(row.training_bytes),
    }


def _list(rows: list[ModelSummary]) -> str:
    headings = ["MODEL", "PARAMETERS", "MACS", "ACTIVATIONS", *(f"TRAIN {name.upper()}" for name in _METHODS)]
    cells = [
        [row.name, f"{row.parameters:,}", f"{row.macs:,}", _bytes(row.activation_bytes)]
        + [_bytes(row.training_bytes[name]) for name in _METHODS]
        for row in rows
    ]
    return table(headings, cells)


def _bytes(count: int | None) -> str:
    return "-" if count is None else format_bytes(count)
