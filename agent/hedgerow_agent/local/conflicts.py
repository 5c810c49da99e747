"""Options that say nothing here, or two things at once: refused, so that nobody believes they did something."""

from argparse import Namespace

from hedgerow_agent.local.problems import EXIT_USAGE, Problem

_PLANNED = "a program is planned already"
_OTHERS = "that folder is only looked at for the job's own weights"
_EXCLUDE = (
    ("--program", "--class", _PLANNED),
    ("--program", "--class-file", _PLANNED),
    ("--class", "--class-file", "each names the class to plan for"),
    ("--weights", "--from-scratch", "each says where parameters start"),
    ("--models", "--weights", _OTHERS),
    ("--models", "--from-scratch", _OTHERS),
    ("--stream", "--epochs", "each line of a stream is learnt from once"),
)
_OF_A_STREAM = ("--window", "--hop", "--idle-seconds")


def check(options: Namespace, job_is_program: bool) -> None:
    """Raise a sentence about the first options that do not go together."""
    for one, other, why in _EXCLUDE:
        if _given(options, one) and _given(options, other):
            raise Problem(f"{one} and {other} do not go together: {why}. Leave one of them out.", EXIT_USAGE)
    for name in _OF_A_STREAM:
        if _given(options, name) and not options.stream:
            raise Problem(f"{name} says how a stream is read; add --stream, or leave it out.", EXIT_USAGE)
    if job_is_program and any(_given(options, name) for name in ("--program", "--class", "--class-file")):
        raise Problem(f"{options.job} is a program already; leave --program, --class and --class-file out.", EXIT_USAGE)


def _given(options: Namespace, name: str) -> bool:
    attribute = {"--class": "device_class"}.get(name, name[2:].replace("-", "_"))
    return getattr(options, attribute) not in (None, False, 0.0)
