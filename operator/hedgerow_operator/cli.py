"""`hedgerow`: the fleet and planning commands. Run it without arguments to be taught."""

from pathlib import Path

import click
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hedgerow_operator import classes as catalogue
from hedgerow_operator import commands, layouts, papers, tables, zoo_commands
from hedgerow_operator.method_words import HELP, parse_method
from hedgerow_plans.extras import explain_missing_extra
from hedgerow_plans.planning.abstract.bare import STRATEGIES
from hedgerow_plans.protocol import keys as key_files
from hedgerow_plans.resources.device_class import DeviceClass


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hedgerow", message="hedgerow %(version)s")
def hedgerow() -> None:
    """Train models on fleets of edge devices, inside hard memory and energy budgets.

    \b
    A first look:
      hedgerow models                     what can be trained
      hedgerow models show resnet18 --plot resnet18.svg
                                          one model in detail, and its picture
      hedgerow plan --model mlp --method lora:4 --class-file board.yaml --batch 32
                                          what fits on a board, before any device sees it
      hedgerow get jobs                   how far jobs are
      hedgerow get devices                what each device does

    \b
    When something went wrong:
      hedgerow rollback device/pump-07 --to previous --wait
      hedgerow release device/pump-07     let it train again

    Jobs and device classes are Kubernetes resources: `kubectl explain trainingjob.spec` describes them.
    """  # noqa: D301 - \\b is click's mark for a paragraph whose lines stay as they are


for command in (
    commands.get,
    commands.rollback,
    commands.release,
    commands.approve,
    zoo_commands.models,
    papers.tables,
    layouts.layout,
    catalogue.classes,
):
    hedgerow.add_command(command)


@hedgerow.command()
@click.argument("problem", required=False, type=click.Path(path_type=Path))
@click.option("--model", help="A name that `hedgerow models` lists.")
@click.option("--method", default="full", show_default=True, help=f"{HELP}.")
@click.option("--class", "class_name", help="A device class that `hedgerow classes` lists.")
@click.option("--class-file", type=click.Path(path_type=Path), help="A DeviceClass manifest (YAML) instead.")
@click.option("--batch", "batch_size", default=32, show_default=True, type=click.IntRange(1, 65_536))
@click.option("--budget", help="Plan for this much memory instead of the class's, such as 64Ki; of a problem: bytes.")
@click.option("--deadline-factor", type=click.FloatRange(0), help="Of a problem: the most time, in times of keep-all.")
@click.option("--techniques", default="recompute,page", show_default=True, help="Of a problem: what may be used.")
@click.option("--strategy", type=click.Choice(STRATEGIES), default=STRATEGIES[0], show_default=True)
@click.option("--time-limit", "seconds", default=10.0, show_default=True, type=click.FloatRange(0, min_open=True))
@click.option("--output", "-o", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("--classes", type=click.IntRange(2), help="How many classes it tells apart, if not the model's own.")
@click.option("--shape", help="Shape of one sample, such as 1,28,28, if not the model's own.")
@click.option("--momentum", default=0.0, show_default=True, type=click.FloatRange(0, 1, max_open=True))
def plan(  # noqa: PLR0917 - click passes one argument per option
    problem: Path | None,
    model: str | None,
    method: str,
    class_name: str | None,
    class_file: Path | None,
    batch_size: int,
    budget: str | None,
    deadline_factor: float | None,
    techniques: str,
    strategy: str,
    seconds: float,
    output: str,
    classes: int | None,
    shape: str | None,
    momentum: float,
) -> None:
    """Show the ladder of plans that devices of a class would get, or plan the bare PROBLEM in a JSON file."""
    if problem is not None:
        if budget is None:
            raise click.UsageError("A problem needs --budget BYTES.")
        try:
            from hedgerow_operator import bare_command  # noqa: PLC0415 - the solver is an extra of its own
        except ModuleNotFoundError as missing:
            raise click.ClickException(explain_missing_extra("hedgerow plan", "planner", missing.name or "")) from None
        request = bare_command.request_from(budget, deadline_factor, techniques, strategy, seconds)
        raise SystemExit(bare_command.run(problem, request, as_json=output == "json"))
    if model is None:
        raise click.UsageError("Give a PROBLEM file, or --model and --class or --class-file.")
    device_class = _chosen_class(class_name, class_file, budget)
    input_shape = None if shape is None else tables.parse_shape(shape)
    wish = tables.Wish(model, parse_method(method), batch_size, momentum, classes, input_shape)
    click.echo(tables.ladder(wish, device_class))


def _chosen_class(name: str | None, file: Path | None, budget: str | None) -> DeviceClass:
    if file is not None and name is None:
        return tables.read_device_class(file, budget)
    if name is not None and file is None:
        return tables.with_budget(catalogue.body(name), budget)
    raise click.UsageError("Give --class with a name that `hedgerow classes` lists, or --class-file with a manifest.")


@hedgerow.group()
def keys() -> None:
    """Make the key with which the operator signs what devices obey."""


@keys.command()
@click.option("--output", "--out", type=click.Path(path_type=Path), default=Path("signing.key"), show_default=True)
def generate(output: Path) -> None:
    """Write a new private key to a file, and print the line for the agents' configuration."""
    key = key_files.generate_private_key()
    try:
        with output.open("x", encoding="ascii") as file:
            output.chmod(0o600)
            file.write(key_files.private_key_text(key) + "\n")
    except FileExistsError:
        raise click.ClickException(
            f"{output} exists already; a key that devices trust is not overwritten. Give another --output."
        ) from None
    except OSError as problem:
        raise click.ClickException(f"{output} cannot be written: {problem.strerror}.") from problem
    click.echo(f"Wrote the private key to {output}: keep it secret, and give it to the operator as a Secret.")
    _say_whom_to_trust(key)


@keys.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def show(file: Path) -> None:
    """Print the line for the agents' configuration again, from the private key in FILE."""
    try:
        key = key_files.parse_private_key(file.read_text(encoding="ascii"))
    except (OSError, ValueError) as problem:
        raise click.ClickException(
            f"{file} holds no signing key ({problem}); make one with `hedgerow keys generate`."
        ) from None
    _say_whom_to_trust(key)


def _say_whom_to_trust(key: Ed25519PrivateKey) -> None:
    public = key.public_key()
    click.echo("Add to every agent's configuration:\n\n[keys]")
    click.echo(f'trusted = {{ {key_files.key_id(public)} = "{key_files.public_key_text(public)}" }}')


def main() -> int:
    """Run the command line."""
    hedgerow(prog_name="hedgerow")
    return 0
