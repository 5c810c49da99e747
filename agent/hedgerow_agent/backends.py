"""What computes on this device: the compiled library where it is installed, else numpy, unless somebody asks for one.

The device's environment counts more than a job: whoever stands before a device knows what it bears. One that is asked
for by name and is not there is never replaced in silence. Imports no numpy: an idle agent asks too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from hedgerow_agent.core.native.layout import MOST_PARTS
from hedgerow_agent.core.native.opening import Unavailable, open_library
from hedgerow_plans.protocol.messages import BackendName

BACKEND_VARIABLE = "HEDGEROW_BACKEND"
THREADS_VARIABLE = "HEDGEROW_THREADS"
_NAMES: tuple[BackendName, ...] = get_args(BackendName)


class BackendMissing(Exception):  # noqa: N818 - reads as what it says of the device
    """What was asked for is not here; the text is a sentence with its remedy."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What computes; the remark is a sentence where that is less than it could be."""

    name: BackendName
    remark: str = ""


def choose(asked: BackendName | None, environ: Mapping[str, str]) -> Choice:
    """Return what computes for a job that asks for something, or for nothing."""
    named = _in_environment(environ)
    wanted = named or asked
    if wanted == "numpy":
        return Choice("numpy")
    library = open_library()
    if not isinstance(library, Unavailable):
        return Choice("native")
    if wanted is None:
        return Choice("numpy", f"{library.reason}; training goes on in numpy.")
    who = f"{BACKEND_VARIABLE} asks" if named else "the job asks"
    raise BackendMissing(
        f"{library.reason}, and {who} for it: install a wheel of this agent that was built for this machine, "
        f"or set {BACKEND_VARIABLE}=numpy."
    )


def _in_environment(environ: Mapping[str, str]) -> BackendName | None:
    text = environ.get(BACKEND_VARIABLE, "")
    if not text:
        return None
    for name in _NAMES:
        if text == name:
            return name
    raise BackendMissing(f"{BACKEND_VARIABLE} is {text!r}: set it to {' or '.join(_NAMES)}, or leave it out.")


def threads(environ: Mapping[str, str]) -> int:
    """Return how many threads the library may use; one unless told otherwise, because devices have other work too."""
    text = environ.get(THREADS_VARIABLE, "") or "1"
    if not text.isdecimal() or not 1 <= int(text) <= MOST_PARTS:
        raise BackendMissing(f"{THREADS_VARIABLE} is {text!r}: set it to a number from 1 to {MOST_PARTS}.")
    return int(text)
