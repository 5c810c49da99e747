"""`hedgerow`: the fleet and planning commands. Run it without arguments to be taught."""

from pathlib import Path

import click
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hedgerow_operator import bench_command, commands, layouts, papers, plan_command, zoo_commands
from hedgerow_operator import classes as catalogue
from hedgerow_plans.protocol import keys as key_files


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
    plan_command.plan,
    bench_command.bench,
    layouts.layout,
    catalogue.classes,
):
    hedgerow.add_command(command)


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
