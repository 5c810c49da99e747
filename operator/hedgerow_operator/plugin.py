"""`kubectl hedgerow`: the fleet's commands as a kubectl plugin. They patch the fields that a person could patch."""

import click

from hedgerow_operator import commands


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def plugin() -> None:
    r"""Look after a Hedgerow fleet.

    \b
      kubectl hedgerow rollback device/pump-07 --to last|previous|base|step-000150 --wait
      kubectl hedgerow rollback job/pump-drift --to base
      kubectl hedgerow release device/pump-07
      kubectl hedgerow approve device/pump-07
      kubectl hedgerow get devices
    """


for command in (commands.get, commands.rollback, commands.release, commands.approve):
    plugin.add_command(command)


def main() -> int:
    """Run the plugin."""
    plugin(prog_name="kubectl hedgerow")
    return 0
