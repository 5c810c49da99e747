"""How commands end when they cannot do what they were asked: a sentence, and an exit code that says which kind."""

import click


class BadInput(click.ClickException):
    """A file or an option that does not say what it should; the sentence says where."""

    exit_code = 2


class NothingFits(click.ClickException):
    """What was asked for is right, but no plan fits the budget; the sentence has the numbers."""

    exit_code = 3
